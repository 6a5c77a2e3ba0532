// SPDX-License-Identifier: Apache-2.0
// infiniop handles, and the device of operator descriptors.
#include "infiniop/handle.h"

#include "api/infini/descriptors.h"
#include "api/infini/devices.h"
#include "api/infini/guard.h"
#include "infiniop/operator_descriptor.h"

using namespace retrograd;
using namespace retrograd::api::infini;

infiniStatus_t infiniopCreateHandle(infiniopHandle_t* handle_ptr) {
  return guard(__func__, [&]() -> Status {
    if (handle_ptr == nullptr) return Status(Code::kNullArgument, "handle_ptr is null");
    const runtime::Device& device = current_device();
    publish(std::make_shared<Handle>(), InfiniopHandle{type_of(device), device.index()}, handle_ptr);
    return Status::ok();
  });
}

infiniStatus_t infiniopDestroyHandle(infiniopHandle_t handle) {
  return guard(__func__, [&]() -> Status { return destroy(handle, "handle"); });
}

infiniStatus_t infiniopGetDescriptorDeviceType(const struct InfiniopDescriptor* desc_ptr,
                                               infiniDevice_t* device_type) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto descriptor, find_live(desc_ptr, "desc_ptr"));
    if (device_type == nullptr) return Status(Code::kNullArgument, "device_type is null");
    *device_type = type_of(descriptor->plan->device());
    return Status::ok();
  });
}

infiniStatus_t infiniopGetDescriptorDeviceId(const struct InfiniopDescriptor* desc_ptr, int* device_id) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto descriptor, find_live(desc_ptr, "desc_ptr"));
    if (device_id == nullptr) return Status(Code::kNullArgument, "device_id is null");
    *device_id = descriptor->plan->device().index();
    return Status::ok();
  });
}
