// SPDX-License-Identifier: Apache-2.0
// infinirt: devices; and the one infiniop call that sets the current device.
#include "api/infini/devices.h"
#include "api/infini/guard.h"
#include "infiniop/handle.h"
#include "infinirt.h"

using namespace retrograd;
using namespace retrograd::api::infini;

namespace {

// Device types when the oldest clients were built: they pass room for this many counts.
constexpr int kCountedTypes = 9;

Status make_current(infiniDevice_t type, int id) {
  RG_TRY(runtime::Device* const found, find_device(type, id));
  return set_current_device(*found);
}

}  // namespace

infiniStatus_t infinirtInit(void) {
  return guard(__func__, []() -> Status { return Status::ok(); });
}

infiniStatus_t infinirtGetAllDeviceCount(int* count_array) {
  return guard(__func__, [&]() -> Status {
    if (count_array == nullptr) return null_pointer("count_array");
    for (int type = 0; type < kCountedTypes; ++type) {
      const auto kind = kind_of(static_cast<infiniDevice_t>(type));
      count_array[type] = kind.is_ok() ? runtime::device_count(kind.value()) : 0;
    }
    return Status::ok();
  });
}

infiniStatus_t infinirtGetDeviceCount(infiniDevice_t device, int* count) {
  return guard(__func__, [&]() -> Status {
    if (count == nullptr) return null_pointer("count");
    RG_TRY(const auto kind, kind_of(device));
    *count = runtime::device_count(kind);
    return Status::ok();
  });
}

infiniStatus_t infinirtSetDevice(infiniDevice_t device, int device_id) {
  return guard(__func__, [&]() -> Status { return make_current(device, device_id); });
}

infiniStatus_t infiniopSetRuntimeDevice(infiniDevice_t device, int device_id) {
  return guard(__func__, [&]() -> Status { return make_current(device, device_id); });
}

infiniStatus_t infinirtGetDevice(infiniDevice_t* device_ptr, int* device_id_ptr) {
  return guard(__func__, [&]() -> Status {
    if (device_ptr == nullptr) return null_pointer("device_ptr");
    if (device_id_ptr == nullptr) return null_pointer("device_id_ptr");
    const runtime::Device& device = current_device();
    *device_ptr = type_of(device);
    *device_id_ptr = device.index();
    return Status::ok();
  });
}

infiniStatus_t infinirtDeviceSynchronize(void) {
  return guard(__func__, []() -> Status { return current_device().synchronize(); });
}

infiniStatus_t infinirtGetMemInfo(infiniDevice_t device, int device_id, size_t* free_mem, size_t* total_mem) {
  return guard(__func__, [&]() -> Status {
    if (free_mem == nullptr) return null_pointer("free_mem");
    if (total_mem == nullptr) return null_pointer("total_mem");
    RG_TRY(const runtime::Device* const found, find_device(device, device_id));
    RG_TRY(const runtime::MemoryInfo info, found->memory_info());
    *free_mem = info.free_bytes;
    *total_mem = info.total_bytes;
    return Status::ok();
  });
}
