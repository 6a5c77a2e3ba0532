// SPDX-License-Identifier: Apache-2.0
// The infinirt and infiniop functions of exports.txt, and our create calls for infiniop.
#include <cstddef>
#include <initializer_list>

#include "exported_calls.h"
#include "infiniop.h"
#include "infinirt.h"
#include "retrograd/infiniop_ext.h"

namespace retrograd::test {
namespace {

constexpr int kMemory = kInfiniOutOfMemory;

using List = std::initializer_list<size_t>;

// All that a row may have made; what is null is not there.
struct State {
  infinirtStream_t stream = nullptr;
  infinirtEvent_t start = nullptr, end = nullptr;
  void *block = nullptr, *host_block = nullptr;
  infiniopHandle_t handle = nullptr;
  infiniopTensorDescriptor_t tensors[4] = {};
  infiniopConvBackwardDescriptor_t conv = nullptr;
  infiniopAvgPoolBackwardDescriptor_t pool = nullptr;
  infiniopConvDescriptor_t forward_conv = nullptr;
  infiniopAvgPoolDescriptor_t forward_pool = nullptr;
  size_t workspace_size = 0;
};
State s;

std::byte source[64], destination[64];
float data[6][4096];
std::byte workspace[1 << 20];
int kOnes[] = {1, 1};
int64_t kWideOnes[] = {1, 1}, kWideZeros[] = {0, 0};
size_t kTwos[] = {2, 2}, kZeros[] = {0, 0};
int64_t kWideTwos[] = {2, 2};

void teardown() {
  if (s.stream != nullptr) infinirtStreamDestroy(s.stream);
  if (s.start != nullptr) infinirtEventDestroy(s.start);
  if (s.end != nullptr) infinirtEventDestroy(s.end);
  infinirtFree(s.block);
  infinirtFreeHost(s.host_block);
  if (s.conv != nullptr) infiniopDestroyConvBackwardDescriptor(s.conv);
  if (s.pool != nullptr) infiniopDestroyAvgPoolBackwardDescriptor(s.pool);
  if (s.forward_conv != nullptr) infiniopDestroyConvDescriptor(s.forward_conv);
  if (s.forward_pool != nullptr) infiniopDestroyAvgPoolDescriptor(s.forward_pool);
  for (infiniopTensorDescriptor_t tensor : s.tensors)
    if (tensor != nullptr) infiniopDestroyTensorDescriptor(tensor);
  if (s.handle != nullptr) infiniopDestroyHandle(s.handle);
  s = State();
}

void nothing() {}

void with_stream() {
  require(infinirtStreamCreate(&s.stream) == 0, "infinirtStreamCreate");
  require(infinirtEventCreate(&s.start) == 0 && infinirtEventCreate(&s.end) == 0, "infinirtEventCreate");
  require(infinirtEventRecord(s.start, s.stream) == 0 && infinirtEventRecord(s.end, s.stream) == 0,
          "infinirtEventRecord");
  require(infinirtStreamSynchronize(s.stream) == 0, "infinirtStreamSynchronize");
  require(infinirtMalloc(&s.block, 64) == 0, "infinirtMalloc");
  require(infinirtMallocHost(&s.host_block, 64) == 0, "infinirtMallocHost");
}

void keep_tensor(List shape) {
  size_t i = 0;
  while (s.tensors[i] != nullptr) ++i;
  require(infiniopCreateTensorDescriptor(&s.tensors[i], shape.size(), shape.begin(), nullptr,
                                         INFINI_DTYPE_F32) == 0,
          "infiniopCreateTensorDescriptor");
}

void conv_tensors() {
  require(infiniopCreateHandle(&s.handle) == 0, "infiniopCreateHandle");
  for (const List shape : {List{1, 4, 6, 6}, {1, 3, 6, 6}, {4, 3, 3, 3}, {4}}) keep_tensor(shape);
}
int create_conv(infiniopConvBackwardDescriptor_t* out, size_t groups) {
  const auto& t = s.tensors;
  return infiniopCreateConvBackwardDescriptor(s.handle, out, t[0], t[1], t[2], t[3], kOnes, kOnes, kOnes,
                                              groups);
}
void conv() {
  conv_tensors();
  require(create_conv(&s.conv, 1) == 0, "infiniopCreateConvBackwardDescriptor");
  require(infiniopGetConvBackwardWorkspaceSize(s.conv, &s.workspace_size) == 0 &&
              s.workspace_size <= sizeof workspace,
          "infiniopGetConvBackwardWorkspaceSize");
}
int run_conv(infinirtStream_t stream) {
  return infiniopConvBackward(s.conv, workspace, s.workspace_size, data[0], data[1], data[2], data[3],
                              data[4], data[5], stream);
}

int create_forward_conv(infiniopConvDescriptor_t* out, size_t n) {
  const auto& t = s.tensors;
  return infiniopCreateConvDescriptor(s.handle, out, t[0], t[1], t[2], t[3], kOnes, kOnes, kOnes, n);
}
void forward_conv() {
  conv_tensors();
  require(create_forward_conv(&s.forward_conv, 2) == 0, "infiniopCreateConvDescriptor");
  require(infiniopGetConvWorkspaceSize(s.forward_conv, &s.workspace_size) == 0 &&
              s.workspace_size <= sizeof workspace,
          "infiniopGetConvWorkspaceSize");
}
int run_forward_conv(infinirtStream_t stream) {
  return infiniopConv(s.forward_conv, workspace, s.workspace_size, data[0], data[1], data[2], data[3],
                      stream);
}

// grad_input, grad_output, input.
void pool_tensors() {
  require(infiniopCreateHandle(&s.handle) == 0, "infiniopCreateHandle");
  for (const List shape : {List{1, 2, 6, 6}, {1, 2, 3, 3}, {1, 2, 6, 6}}) keep_tensor(shape);
}
int create_pool(infiniopAvgPoolBackwardDescriptor_t* out) {
  const auto& t = s.tensors;
  return infiniopCreateAvgPoolBackwardDescriptor(s.handle, out, t[0], t[1], t[2], kTwos, kTwos, kZeros,
                                                 false);
}
void pool() {
  pool_tensors();
  require(create_pool(&s.pool) == 0, "infiniopCreateAvgPoolBackwardDescriptor");
  require(infiniopGetAvgPoolBackwardWorkspaceSize(s.pool, &s.workspace_size) == 0 &&
              s.workspace_size <= sizeof workspace,
          "infiniopGetAvgPoolBackwardWorkspaceSize");
}

int create_forward_pool(infiniopAvgPoolDescriptor_t* out) {
  const auto& t = s.tensors;
  return infiniopCreateAvgPoolDescriptor(s.handle, out, t[1], t[2], kTwos, kTwos, kZeros, false);
}
void forward_pool() {
  pool_tensors();
  require(create_forward_pool(&s.forward_pool) == 0, "infiniopCreateAvgPoolDescriptor");
  require(infiniopGetAvgPoolWorkspaceSize(s.forward_pool, &s.workspace_size) == 0 &&
              s.workspace_size <= sizeof workspace,
          "infiniopGetAvgPoolWorkspaceSize");
}

// An object that the call ends, if it succeeded.
template <class T>
int ended(int code, T*& object) {
  if (code == 0) object = nullptr;
  return code;
}
template <class Handle>
Handle* out() {
  return reinterpret_cast<Handle*>(&written.pointer);
}

void destroy_event() { require(infinirtEventDestroy(written.pointer) == 0, "infinirtEventDestroy"); }
void free_block() { require(infinirtFree(written.pointer) == 0, "infinirtFree"); }
void destroy_conv() {
  require(infiniopDestroyConvBackwardDescriptor(*out<infiniopConvBackwardDescriptor_t>()) == 0, "destroy");
}
void destroy_pool() {
  require(infiniopDestroyAvgPoolBackwardDescriptor(*out<infiniopAvgPoolBackwardDescriptor_t>()) == 0,
          "destroy");
}
void finish() { require(infinirtStreamSynchronize(s.stream) == 0, "infinirtStreamSynchronize"); }

const ExportedCall kCalls[] = {
    {"infinirtInit", kMemory, nothing, [] { return int{infinirtInit()}; }, nullptr, teardown},
    {"infinirtGetAllDeviceCount", kMemory, nothing,
     [] {
       int counts[9];
       return int{infinirtGetAllDeviceCount(counts)};
     },
     nullptr, teardown},
    {"infinirtGetDeviceCount", kMemory, nothing,
     [] { return int{infinirtGetDeviceCount(INFINI_DEVICE_CPU, reinterpret_cast<int*>(&written.number))}; },
     nullptr, teardown},
    {"infinirtSetDevice", kMemory, nothing, [] { return int{infinirtSetDevice(INFINI_DEVICE_CPU, 0)}; },
     nullptr, teardown},
    {"infinirtSetDevice", kMemory, nothing, [] { return int{infinirtSetDevice(INFINI_DEVICE_ASCEND, 0)}; },
     nullptr, teardown, INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED},
    {"infinirtGetDevice", kMemory, nothing,
     [] {
       infiniDevice_t type;
       return int{infinirtGetDevice(&type, reinterpret_cast<int*>(&written.number))};
     },
     nullptr, teardown},
    {"infinirtDeviceSynchronize", kMemory, with_stream, [] { return int{infinirtDeviceSynchronize()}; },
     nullptr, teardown},
    {"infinirtGetMemInfo", kMemory, nothing,
     [] { return int{infinirtGetMemInfo(INFINI_DEVICE_CPU, 0, &written.number, &written.number)}; }, nullptr,
     teardown},

    {"infinirtStreamCreate", kMemory, nothing, [] { return int{infinirtStreamCreate(&written.pointer)}; },
     [] { require(infinirtStreamDestroy(written.pointer) == 0, "infinirtStreamDestroy"); }, teardown},
    {"infinirtStreamDestroy", kMemory, with_stream,
     [] { return ended(infinirtStreamDestroy(s.stream), s.stream); }, nullptr, teardown},
    {"infinirtStreamDestroy", kMemory, nothing, [] { return int{infinirtStreamDestroy(data)}; }, nullptr,
     teardown, INFINI_STATUS_BAD_PARAM},
    {"infinirtStreamSynchronize", kMemory, with_stream,
     [] { return int{infinirtStreamSynchronize(s.stream)}; }, nullptr, teardown},
    {"infinirtStreamWaitEvent", kMemory, with_stream,
     [] { return int{infinirtStreamWaitEvent(s.stream, s.start)}; }, nullptr, teardown},
    {"infinirtEventCreate", kMemory, nothing, [] { return int{infinirtEventCreate(&written.pointer)}; },
     destroy_event, teardown},
    {"infinirtEventCreateWithFlags", kMemory, nothing,
     [] { return int{infinirtEventCreateWithFlags(&written.pointer, INFINIRT_EVENT_DISABLE_TIMING)}; },
     destroy_event, teardown},
    {"infinirtEventRecord", kMemory, with_stream, [] { return int{infinirtEventRecord(s.start, s.stream)}; },
     nullptr, teardown},
    {"infinirtEventQuery", kMemory, with_stream,
     [] {
       return int{infinirtEventQuery(s.start, reinterpret_cast<infinirtEventStatus_t*>(&written.number))};
     },
     nullptr, teardown},
    {"infinirtEventSynchronize", kMemory, with_stream, [] { return int{infinirtEventSynchronize(s.start)}; },
     nullptr, teardown},
    {"infinirtEventDestroy", kMemory, with_stream,
     [] { return ended(infinirtEventDestroy(s.start), s.start); }, nullptr, teardown},
    {"infinirtEventElapsedTime", kMemory, with_stream,
     [] { return int{infinirtEventElapsedTime(reinterpret_cast<float*>(&written.number), s.start, s.end)}; },
     nullptr, teardown},

    {"infinirtMalloc", kMemory, nothing, [] { return int{infinirtMalloc(&written.pointer, 64)}; }, free_block,
     teardown},
    {"infinirtMalloc", kMemory, nothing, [] { return int{infinirtMalloc(nullptr, 64)}; }, nullptr, teardown,
     INFINI_STATUS_NULL_POINTER},
    {"infinirtMallocHost", kMemory, nothing, [] { return int{infinirtMallocHost(&written.pointer, 64)}; },
     [] { require(infinirtFreeHost(written.pointer) == 0, "infinirtFreeHost"); }, teardown},
    {"infinirtFree", kMemory, with_stream, [] { return ended(infinirtFree(s.block), s.block); }, nullptr,
     teardown},
    {"infinirtFree", kMemory, nothing, [] { return int{infinirtFree(source)}; }, nullptr, teardown,
     INFINI_STATUS_BAD_PARAM},
    {"infinirtFreeHost", kMemory, with_stream,
     [] { return ended(infinirtFreeHost(s.host_block), s.host_block); }, nullptr, teardown},
    {"infinirtMemcpy", kMemory, nothing,
     [] { return int{infinirtMemcpy(destination, source, 64, INFINIRT_MEMCPY_H2H)}; }, nullptr, teardown},
    {"infinirtMemcpyAsync", kMemory, with_stream,
     [] { return int{infinirtMemcpyAsync(destination, source, 64, INFINIRT_MEMCPY_H2H, s.stream)}; }, finish,
     teardown},
    {"infinirtMallocAsync", kMemory, with_stream,
     [] { return int{infinirtMallocAsync(&written.pointer, 64, s.stream)}; }, free_block, teardown},
    {"infinirtFreeAsync", kMemory, with_stream,
     [] { return ended(infinirtFreeAsync(s.block, s.stream), s.block); }, finish, teardown},
    {"infinirtMemset", kMemory, nothing, [] { return int{infinirtMemset(destination, 0, 64)}; }, nullptr,
     teardown},
    {"infinirtMemsetAsync", kMemory, with_stream,
     [] { return int{infinirtMemsetAsync(destination, 0, 64, s.stream)}; }, finish, teardown},

    {"infiniopSetRuntimeDevice", kMemory, nothing,
     [] { return int{infiniopSetRuntimeDevice(INFINI_DEVICE_CPU, 0)}; }, nullptr, teardown},
    {"infiniopCreateHandle", kMemory, nothing,
     [] { return int{infiniopCreateHandle(out<infiniopHandle_t>())}; },
     [] { require(infiniopDestroyHandle(*out<infiniopHandle_t>()) == 0, "infiniopDestroyHandle"); },
     teardown},
    {"infiniopDestroyHandle", kMemory, conv_tensors,
     [] { return ended(infiniopDestroyHandle(s.handle), s.handle); }, nullptr, teardown},
    {"infiniopCreateTensorDescriptor", kMemory, nothing,
     [] {
       const size_t shape[] = {2, 3, 4};
       return int{infiniopCreateTensorDescriptor(out<infiniopTensorDescriptor_t>(), 3, shape, nullptr,
                                                 INFINI_DTYPE_F32)};
     },
     [] {
       require(infiniopDestroyTensorDescriptor(*out<infiniopTensorDescriptor_t>()) == 0,
               "infiniopDestroyTensorDescriptor");
     },
     teardown},
    {"infiniopDestroyTensorDescriptor", kMemory, conv_tensors,
     [] { return ended(infiniopDestroyTensorDescriptor(s.tensors[3]), s.tensors[3]); }, nullptr, teardown},
    {"infiniopGetDescriptorDeviceType", kMemory, conv,
     [] {
       return int{
           infiniopGetDescriptorDeviceType(s.conv, reinterpret_cast<infiniDevice_t*>(&written.number))};
     },
     nullptr, teardown},
    {"infiniopGetDescriptorDeviceId", kMemory, conv,
     [] { return int{infiniopGetDescriptorDeviceId(s.conv, reinterpret_cast<int*>(&written.number))}; },
     nullptr, teardown},
    {"infiniopCreateConvBackwardDescriptor", kMemory, conv_tensors,
     [] { return create_conv(out<infiniopConvBackwardDescriptor_t>(), 1); }, destroy_conv, teardown},
    {"infiniopCreateConvBackwardDescriptor", kMemory, conv_tensors,
     [] { return create_conv(out<infiniopConvBackwardDescriptor_t>(), 7); }, nullptr, teardown,
     INFINI_STATUS_BAD_PARAM},
    {"infiniopGetConvBackwardWorkspaceSize", kMemory, conv,
     [] { return int{infiniopGetConvBackwardWorkspaceSize(s.conv, &written.number)}; }, nullptr, teardown},
    {"infiniopConvBackward", kMemory, conv, [] { return run_conv(nullptr); }, nullptr, teardown},
    {"infiniopConvBackward", kMemory,
     [] {
       with_stream();
       conv();
     },
     [] { return run_conv(s.stream); }, finish, teardown},
    {"infiniopDestroyConvBackwardDescriptor", kMemory, conv,
     [] { return ended(infiniopDestroyConvBackwardDescriptor(s.conv), s.conv); }, nullptr, teardown},
    {"infiniopCreateAvgPoolBackwardDescriptor", kMemory, pool_tensors,
     [] { return create_pool(out<infiniopAvgPoolBackwardDescriptor_t>()); }, destroy_pool, teardown},
    {"infiniopGetAvgPoolBackwardWorkspaceSize", kMemory, pool,
     [] { return int{infiniopGetAvgPoolBackwardWorkspaceSize(s.pool, &written.number)}; }, nullptr, teardown},
    {"infiniopAvgPoolBackward", kMemory, pool,
     [] {
       return int{
           infiniopAvgPoolBackward(s.pool, workspace, s.workspace_size, data[0], data[1], nullptr, nullptr)};
     },
     nullptr, teardown},
    {"infiniopDestroyAvgPoolBackwardDescriptor", kMemory, pool,
     [] { return ended(infiniopDestroyAvgPoolBackwardDescriptor(s.pool), s.pool); }, nullptr, teardown},
    {"infiniopCreateConvDescriptor", kMemory, conv_tensors,
     [] { return create_forward_conv(out<infiniopConvDescriptor_t>(), 2); },
     [] { require(infiniopDestroyConvDescriptor(*out<infiniopConvDescriptor_t>()) == 0, "destroy"); },
     teardown},
    {"infiniopCreateConvDescriptor", kMemory, conv_tensors,
     [] { return create_forward_conv(out<infiniopConvDescriptor_t>(), 7); }, nullptr, teardown,
     INFINI_STATUS_BAD_PARAM},
    {"infiniopGetConvWorkspaceSize", kMemory, forward_conv,
     [] { return int{infiniopGetConvWorkspaceSize(s.forward_conv, &written.number)}; }, nullptr, teardown},
    {"infiniopConv", kMemory, forward_conv, [] { return run_forward_conv(nullptr); }, nullptr, teardown},
    {"infiniopConv", kMemory,
     [] {
       with_stream();
       forward_conv();
     },
     [] { return run_forward_conv(s.stream); }, finish, teardown},
    {"infiniopDestroyConvDescriptor", kMemory, forward_conv,
     [] { return ended(infiniopDestroyConvDescriptor(s.forward_conv), s.forward_conv); }, nullptr, teardown},
    {"infiniopCreateAvgPoolDescriptor", kMemory, pool_tensors,
     [] { return create_forward_pool(out<infiniopAvgPoolDescriptor_t>()); },
     [] { require(infiniopDestroyAvgPoolDescriptor(*out<infiniopAvgPoolDescriptor_t>()) == 0, "destroy"); },
     teardown},
    {"infiniopGetAvgPoolWorkspaceSize", kMemory, forward_pool,
     [] { return int{infiniopGetAvgPoolWorkspaceSize(s.forward_pool, &written.number)}; }, nullptr, teardown},
    {"infiniopAvgPool", kMemory, forward_pool,
     [] {
       return int{infiniopAvgPool(s.forward_pool, workspace, s.workspace_size, data[0], data[1], nullptr)};
     },
     nullptr, teardown},
    {"infiniopDestroyAvgPoolDescriptor", kMemory, forward_pool,
     [] { return ended(infiniopDestroyAvgPoolDescriptor(s.forward_pool), s.forward_pool); }, nullptr,
     teardown},

    {"retrogradInfiniopCreateConvBackwardDescriptor", kMemory, conv_tensors,
     [] {
       const auto& t = s.tensors;
       return int{retrogradInfiniopCreateConvBackwardDescriptor(
           s.handle, out<infiniopConvBackwardDescriptor_t>(), t[0], t[1], t[2], t[3], kWideOnes, 2, kWideOnes,
           kWideOnes, false, kWideZeros, 1)};
     },
     destroy_conv, teardown},
    {"retrogradInfiniopCreateAvgPoolBackwardDescriptor", kMemory, pool_tensors,
     [] {
       const auto& t = s.tensors;
       return int{retrogradInfiniopCreateAvgPoolBackwardDescriptor(
           s.handle, out<infiniopAvgPoolBackwardDescriptor_t>(), t[0], t[1], t[2], kWideTwos, kWideTwos,
           kWideZeros, false, true, 0)};
     },
     destroy_pool, teardown},
};

}  // namespace

std::span<const ExportedCall> exported_infini_calls() { return kCalls; }

}  // namespace retrograd::test
