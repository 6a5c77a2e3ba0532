// SPDX-License-Identifier: Apache-2.0
// infinirt: memory.

#include "api/infini/blocks.h"
#include "api/infini/devices.h"
#include "api/infini/guard.h"
#include "api/infini/streams.h"
#include "infinirt.h"

using namespace retrograd;
using namespace retrograd::api::infini;

namespace {

Status check_copy(const void* dst, const void* src, size_t size, infinirtMemcpyKind_t kind) {
  if (kind < INFINIRT_MEMCPY_H2H || kind > INFINIRT_MEMCPY_D2D)
    return Status(Code::kInvalidArgument, "kind is {}, expected H2H (0), H2D (1), D2H (2) or D2D (3)",
                  static_cast<int>(kind));
  RG_CHECK(check_bytes(dst, size, "dst"));
  return check_bytes(src, size, "src");
}

}  // namespace

infiniStatus_t infinirtMalloc(void** p_ptr, size_t size) {
  return guard(__func__, [&] { return allocate_block(p_ptr, size, runtime::MemorySpace::kDevice); });
}

infiniStatus_t infinirtMallocHost(void** p_ptr, size_t size) {
  return guard(__func__, [&] { return allocate_block(p_ptr, size, runtime::MemorySpace::kHost); });
}

infiniStatus_t infinirtFree(void* ptr) {
  return guard(__func__, [&] { return free_block(ptr, runtime::MemorySpace::kDevice); });
}

infiniStatus_t infinirtFreeHost(void* ptr) {
  return guard(__func__, [&] { return free_block(ptr, runtime::MemorySpace::kHost); });
}

infiniStatus_t infinirtMallocAsync(void** p_ptr, size_t size, infinirtStream_t stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto queue, find_stream(stream, current_device()));
    return allocate_block(p_ptr, size, runtime::MemorySpace::kDevice);
  });
}

infiniStatus_t infinirtFreeAsync(void* ptr, infinirtStream_t stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto queue, find_stream(stream, current_device()));
    return free_block_later(ptr, *queue);
  });
}

infiniStatus_t infinirtMemcpy(void* dst, const void* src, size_t size, infinirtMemcpyKind_t kind) {
  return guard(__func__, [&]() -> Status {
    RG_CHECK(check_copy(dst, src, size, kind));
    return size == 0 ? Status::ok() : current_device().copy(dst, src, size);
  });
}

infiniStatus_t infinirtMemcpyAsync(void* dst, const void* src, size_t size, infinirtMemcpyKind_t kind,
                                   infinirtStream_t stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto queue, find_stream(stream, current_device()));
    RG_CHECK(check_copy(dst, src, size, kind));
    return size == 0 ? Status::ok() : queue->copy(dst, src, size);
  });
}

infiniStatus_t infinirtMemset(void* ptr, int value, size_t size) {
  return guard(__func__, [&]() -> Status {
    RG_CHECK(check_bytes(ptr, size, "ptr"));
    return size == 0 ? Status::ok() : current_device().fill(ptr, value, size);
  });
}

infiniStatus_t infinirtMemsetAsync(void* ptr, int value, size_t size, infinirtStream_t stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto queue, find_stream(stream, current_device()));
    RG_CHECK(check_bytes(ptr, size, "ptr"));
    return size == 0 ? Status::ok() : queue->fill(ptr, value, size);
  });
}
