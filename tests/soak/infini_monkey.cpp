// SPDX-License-Identifier: Apache-2.0
// infinirt and infiniop, called with handles and values of all sorts; addresses that are followed are good.
#include <vector>

#include "infiniop.h"
#include "infinirt.h"
#include "retrograd/infiniop_ext.h"
#include "retrograd/retrograd.h"
#include "storm.h"

namespace retrograd::soak {
namespace {

constexpr size_t kWorkspaceBytes = 4 << 20;

void* workspace() {
  thread_local std::vector<char> bytes(kWorkspaceBytes);
  return bytes.data();
}

void devices(Monkey& m) {
  int counts[16], count = 0, id = 0;
  infiniDevice_t device = INFINI_DEVICE_CPU;
  size_t free = 0, total = 0;
  // NVIDIA only where there is none: a GPU takes any address for a stream of the caller's own.
  const auto type = static_cast<infiniDevice_t>(m.between(-1, 12));
  const bool gpu = type == INFINI_DEVICE_NVIDIA &&
                   infinirtGetDeviceCount(INFINI_DEVICE_NVIDIA, &count) == INFINI_STATUS_SUCCESS && count > 0;
  switch (m.between(0, 6)) {
    case 0:
      RG_INFINI(m, infinirtInit);
      break;
    case 1:
      RG_INFINI(m, infinirtGetAllDeviceCount, m.chance(90) ? counts : nullptr);
      break;
    case 2:
      RG_INFINI(m, infinirtGetDeviceCount, type, m.chance(90) ? &count : nullptr);
      break;
    case 3:
      if (!gpu) RG_INFINI(m, infinirtSetDevice, type, static_cast<int>(m.between(-1, 2)));
      break;
    case 4:
      RG_INFINI(m, infinirtGetDevice, m.chance(90) ? &device : nullptr, &id);
      break;
    case 5:
      RG_INFINI(m, infinirtDeviceSynchronize);
      break;
    default:
      RG_INFINI(m, infinirtGetMemInfo, type, static_cast<int>(m.between(-1, 2)), &free,
                m.chance(90) ? &total : nullptr);
      if (retrogradVersion() == nullptr) m.storm.fail("retrogradVersion answered null");
  }
}

void streams(Monkey& m) {
  infinirtStream_t stream = nullptr;
  auto* const some = m.handle<infinirtStream_t>(Kind::kInfiniStream);
  switch (m.between(0, 3)) {
    case 0:
      if (RG_INFINI(m, infinirtStreamCreate, m.chance(95) ? &stream : nullptr) != 0) return;
      RG_INFINI(m, infinirtStreamDestroy, m.storm.bag(Kind::kInfiniStream).put(m.random(), stream));
      break;
    case 1:
      RG_INFINI(m, infinirtStreamDestroy, some);
      break;
    case 2:
      RG_INFINI(m, infinirtStreamSynchronize, some);
      break;
    default:
      RG_INFINI(m, infinirtStreamWaitEvent, some, m.handle<infinirtEvent_t>(Kind::kInfiniEvent));
  }
}

void events(Monkey& m) {
  infinirtEvent_t event = nullptr;
  infinirtEventStatus_t status = INFINIRT_EVENT_COMPLETE;
  float ms = 0;
  auto* const some = m.handle<infinirtEvent_t>(Kind::kInfiniEvent);
  switch (m.between(0, 5)) {
    case 0:
      if (m.chance(50)
              ? RG_INFINI(m, infinirtEventCreate, m.chance(95) ? &event : nullptr)
              : RG_INFINI(m, infinirtEventCreateWithFlags, &event, static_cast<uint32_t>(m.between(0, 4))))
        return;
      RG_INFINI(m, infinirtEventDestroy, m.storm.bag(Kind::kInfiniEvent).put(m.random(), event));
      break;
    case 1:
      RG_INFINI(m, infinirtEventRecord, some, m.handle<infinirtStream_t>(Kind::kInfiniStream));
      break;
    case 2:
      RG_INFINI(m, infinirtEventQuery, some, m.chance(90) ? &status : nullptr);
      break;
    case 3:
      RG_INFINI(m, infinirtEventSynchronize, some);
      break;
    case 4:
      RG_INFINI(m, infinirtEventDestroy, some);
      break;
    default:
      RG_INFINI(m, infinirtEventElapsedTime, m.chance(90) ? &ms : nullptr, some,
                m.handle<infinirtEvent_t>(Kind::kInfiniEvent));
  }
}

// Blocks are allocated and freed and never touched: another thread may free them.
void memory(Monkey& m) {
  void* block = nullptr;
  const size_t sizes[] = {0, 1, 64, 4096, 1 << 20, SIZE_MAX, SIZE_MAX / 2};
  char* const data = m.storm.operands();
  const auto count = static_cast<size_t>(m.between(0, 4096));
  const auto copy_kind = static_cast<infinirtMemcpyKind_t>(m.between(-1, 4));
  auto* const stream = m.handle<infinirtStream_t>(Kind::kInfiniStream);
  switch (m.between(0, 9)) {
    case 0:
      if (RG_INFINI(m, infinirtMalloc, m.chance(95) ? &block : nullptr, m.one_of(sizes)) == 0)
        RG_INFINI(m, infinirtFree, m.storm.bag(Kind::kInfiniBlock).put(m.random(), block));
      break;
    case 1:
      if (RG_INFINI(m, infinirtMallocHost, &block, m.one_of(sizes)) == 0)
        RG_INFINI(m, infinirtFreeHost, m.storm.bag(Kind::kInfiniHostBlock).put(m.random(), block));
      break;
    case 2:
      if (RG_INFINI(m, infinirtMallocAsync, &block, m.one_of(sizes), stream) == 0)
        RG_INFINI(m, infinirtFreeAsync, m.storm.bag(Kind::kInfiniBlock).put(m.random(), block), stream);
      break;
    case 3:
      RG_INFINI(m, infinirtFree, m.handle(Kind::kInfiniBlock));
      break;
    case 4:
      RG_INFINI(m, infinirtFreeHost, m.handle(Kind::kInfiniHostBlock));
      break;
    case 5:
      RG_INFINI(m, infinirtFreeAsync, m.handle(Kind::kInfiniBlock), stream);
      break;
    case 6:
      RG_INFINI(m, infinirtMemcpy, m.chance(95) ? data : nullptr, data + 8192, count, copy_kind);
      break;
    case 7:
      RG_INFINI(m, infinirtMemcpyAsync, data, m.chance(95) ? data + 8192 : nullptr, count, copy_kind, stream);
      break;
    case 8:
      RG_INFINI(m, infinirtMemset, m.chance(95) ? data : nullptr, 0, count);
      break;
    default:
      RG_INFINI(m, infinirtMemsetAsync, data, 0, count, stream);
  }
}

infiniopTensorDescriptor_t new_tensor(Monkey& m, const std::vector<size_t>& shape) {
  std::vector<ptrdiff_t> strides;
  for (size_t i = 0; i < shape.size(); ++i) strides.push_back(m.between(-100, 100));
  const infiniDtype_t types[] = {INFINI_DTYPE_F16, INFINI_DTYPE_BF16, INFINI_DTYPE_F64};
  infiniopTensorDescriptor_t tensor = nullptr;
  RG_INFINI(m, infiniopCreateTensorDescriptor, m.chance(99) ? &tensor : nullptr, shape.size(), shape.data(),
            m.chance(85) ? nullptr : strides.data(), m.chance(97) ? INFINI_DTYPE_F32 : m.one_of(types));
  return tensor;
}

void keep_tensor(Monkey& m, infiniopTensorDescriptor_t tensor) {
  void* const before = m.storm.bag(Kind::kTensorDescriptor).put(m.random(), tensor);
  RG_INFINI(m, infiniopDestroyTensorDescriptor, static_cast<infiniopTensorDescriptor_t>(before));
}

void handles(Monkey& m) {
  infiniopHandle_t handle = nullptr;
  infiniDevice_t device = INFINI_DEVICE_CPU;
  int id = 0;
  const auto* descriptor = m.handle<const struct InfiniopDescriptor*>(Kind::kConvDescriptor);
  switch (m.between(0, 4)) {
    case 0:
      if (RG_INFINI(m, infiniopCreateHandle, m.chance(95) ? &handle : nullptr) != 0) return;
      RG_INFINI(m, infiniopDestroyHandle,
                static_cast<infiniopHandle_t>(m.storm.bag(Kind::kHandle).put(m.random(), handle)));
      break;
    case 1:
      RG_INFINI(m, infiniopDestroyHandle, m.handle<infiniopHandle_t>(Kind::kHandle));
      break;
    case 2:
      RG_INFINI(m, infiniopDestroyTensorDescriptor,
                m.handle<infiniopTensorDescriptor_t>(Kind::kTensorDescriptor));
      break;
    case 3:
      RG_INFINI(m, infiniopGetDescriptorDeviceType, descriptor, m.chance(90) ? &device : nullptr);
      break;
    default:
      RG_INFINI(m, infiniopGetDescriptorDeviceId, descriptor, m.chance(90) ? &id : nullptr);
  }
}

void create_descriptors(Monkey& m) {
  const auto size = [&](int64_t first, int64_t last) { return static_cast<size_t>(m.between(first, last)); };
  const size_t c = size(1, 4), k = size(1, 4), in = size(2, 6), kernel = size(1, 2);
  const std::vector<size_t> x{2, c, in, in}, w{k, c, kernel, kernel},
      y{2, k, in - kernel + 1, in - kernel + 1};
  infiniopTensorDescriptor_t made[3] = {new_tensor(m, y), new_tensor(m, x), new_tensor(m, w)};
  infiniopTensorDescriptor_t used[3];
  for (size_t i = 0; i < 3; ++i)
    used[i] = m.chance(96) ? made[i] : m.handle<infiniopTensorDescriptor_t>(Kind::kTensorDescriptor);
  infiniopHandle_t handle = nullptr;
  RG_INFINI(m, infiniopCreateHandle, &handle);
  infiniopHandle_t const with = m.chance(96) ? handle : m.handle<infiniopHandle_t>(Kind::kHandle);
  struct InfiniopDescriptor* out = nullptr;
  struct InfiniopDescriptor** const out_ptr = m.chance(98) ? &out : nullptr;
  int ones[4] = {1, 1, 1, 1}, zeros[4] = {};
  size_t wide_ones[4] = {1, 1, 1, 1}, wide_zeros[4] = {};
  const int64_t long_ones[6] = {1, 1, 1, 1, 1, 1}, long_zeros[6] = {};
  int status = -1;
  const bool conv = m.chance(60), ours = m.chance(30);
  if (conv) {
    status =
        ours ? RG_INFINI(m, retrogradInfiniopCreateConvBackwardDescriptor, with, out_ptr, used[0], used[1],
                         used[2], nullptr, long_zeros, size(0, 4), long_ones, long_ones, m.chance(10),
                         long_zeros, m.between(0, 2))
             : RG_INFINI(m, infiniopCreateConvBackwardDescriptor, with, out_ptr, used[0], used[1], used[2],
                         nullptr, zeros, m.chance(90) ? ones : zeros, ones, size(1, m.chance(90) ? 1 : 4));
  } else {
    status =
        ours ? RG_INFINI(m, retrogradInfiniopCreateAvgPoolBackwardDescriptor, with, out_ptr, used[1], used[1],
                         used[1], long_ones, long_ones, long_zeros, m.chance(50), m.chance(50),
                         m.between(-1, 1))
             : RG_INFINI(m, infiniopCreateAvgPoolBackwardDescriptor, with, out_ptr, used[1], used[1], used[1],
                         m.chance(95) ? wide_ones : nullptr, wide_ones, wide_zeros, m.chance(50));
  }
  if (status == 0) {
    const Kind kind = conv ? Kind::kConvDescriptor : Kind::kPoolDescriptor;
    auto* const before = static_cast<struct InfiniopDescriptor*>(m.storm.bag(kind).put(m.random(), out));
    if (conv)
      RG_INFINI(m, infiniopDestroyConvBackwardDescriptor, before);
    else
      RG_INFINI(m, infiniopDestroyAvgPoolBackwardDescriptor, before);
  }
  for (infiniopTensorDescriptor_t tensor : made) keep_tensor(m, tensor);
  RG_INFINI(m, infiniopDestroyHandle, handle);
}

void run_descriptors(Monkey& m) {
  auto* const conv = m.handle<struct InfiniopDescriptor*>(Kind::kConvDescriptor);
  auto* const pool = m.handle<struct InfiniopDescriptor*>(Kind::kPoolDescriptor);
  auto* const stream = m.chance(50) ? nullptr : m.handle<infinirtStream_t>(Kind::kInfiniStream);
  const size_t bytes = m.chance(95) ? kWorkspaceBytes : 0;
  size_t size = 0;
  const auto data = [&] { return m.chance(97) ? m.storm.operands() : nullptr; };
  int status = -1;
  switch (m.between(0, 5)) {
    case 0:
      RG_INFINI(m, infiniopGetConvBackwardWorkspaceSize, conv, m.chance(90) ? &size : nullptr);
      break;
    case 1:
      RG_INFINI(m, infiniopGetAvgPoolBackwardWorkspaceSize, pool, m.chance(90) ? &size : nullptr);
      break;
    case 2:
      if (m.chance(50)) RG_INFINI(m, infiniopDestroyConvBackwardDescriptor, conv);
      if (m.chance(50)) RG_INFINI(m, infiniopDestroyAvgPoolBackwardDescriptor, pool);
      break;
    case 3:
      status =
          RG_INFINI(m, infiniopAvgPoolBackward, pool, workspace(), bytes, data(), data(), data(), stream);
      break;
    default:
      status = RG_INFINI(m, infiniopConvBackward, conv, workspace(), bytes, data(), data(), data(), data(),
                         data(), data(), stream);
  }
  // The workspace is free when the stream got there, or was ended by another thread.
  if (status == 0 && RG_INFINI(m, infinirtStreamSynchronize, stream) != 0) m.storm.calls.drain();
}

}  // namespace

void infini_monkey(Monkey& m) {
  void (*const kinds[])(Monkey&) = {devices,
                                    streams,
                                    events,
                                    events,
                                    memory,
                                    memory,
                                    handles,
                                    create_descriptors,
                                    create_descriptors,
                                    run_descriptors,
                                    run_descriptors,
                                    run_descriptors};
  m.one_of(kinds)(m);
}

}  // namespace retrograd::soak
