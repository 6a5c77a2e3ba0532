// SPDX-License-Identifier: Apache-2.0
// The acl runtime and the aclnn operators, called with handles and values of all sorts. Addresses that the
// library may follow are always good: those are the caller's to mind.
#include <algorithm>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "storm.h"

namespace retrograd::soak {
namespace {

constexpr size_t kWorkspaceBytes = 4 << 20;
constexpr int kMostOptions = 5;

// Of this thread's own: two streams never share it.
void* workspace() {
  thread_local std::vector<char> bytes(kWorkspaceBytes);
  return bytes.data();
}

void devices(Monkey& m) {
  int32_t device = 0;
  uint32_t count = 0;
  aclrtRunMode mode = ACL_HOST;
  size_t free = 0, total = 0;
  int64_t value = 0;
  const auto option = static_cast<aclSysParamOpt>(m.between(-1, kMostOptions));
  switch (m.between(0, 9)) {
    case 0:
      RG_ACL(m, aclrtGetDevice, m.chance(90) ? &device : nullptr);
      break;
    case 1:
      RG_ACL(m, aclrtGetDeviceCount, m.chance(90) ? &count : nullptr);
      break;
    case 2:
      RG_ACL(m, aclrtGetRunMode, m.chance(90) ? &mode : nullptr);
      break;
    case 3:
      RG_ACL(m, aclrtSynchronizeDevice);
      break;
    case 4:
      RG_ACL(m, aclrtGetMemInfo, static_cast<aclrtMemAttr>(m.between(-1, 11)), &free,
             m.chance(90) ? &total : nullptr);
      break;
    case 5:
      RG_ACL(m, aclrtCtxSetSysParamOpt, option, m.between(-2, 2));
      break;
    case 6:
      RG_ACL(m, aclrtCtxGetSysParamOpt, option, m.chance(90) ? &value : nullptr);
      break;
    case 7:
      RG_ACL(m, aclrtSetSysParamOpt, option, m.between(-2, 2));
      break;
    case 8:
      RG_ACL(m, aclrtGetSysParamOpt, option, m.chance(90) ? &value : nullptr);
      break;
    default:
      if (aclrtGetSocName() == nullptr) m.storm.fail("aclrtGetSocName answered null");
      RG_ACLNN(m, aclnnInit, m.chance(50) ? nullptr : "/nonexistent");
      RG_ACLNN(m, aclnnFinalize);
      if (aclDataTypeSize(static_cast<aclDataType>(m.between(-2, 40))) > 16) m.storm.fail("aclDataTypeSize");
      if (aclFloat16ToFloat(aclFloatToFloat16(2.5F)) != 2.5F) m.storm.fail("aclFloatToFloat16");
  }
}

void streams(Monkey& m) {
  aclrtStream stream = nullptr;
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  auto* const some = m.handle<aclrtStream>(Kind::kAclStream);
  switch (m.between(0, 7)) {
    case 0:
      if (RG_ACL(m, aclrtCreateStream, m.chance(95) ? &stream : nullptr) != 0 || stream == nullptr) return;
      stream = m.storm.bag(Kind::kAclStream).put(m.random(), stream);
      RG_ACL(m, aclrtDestroyStream, stream);
      break;
    case 1:
      if (RG_ACL(m, aclrtCreateStreamWithConfig, &stream, 1, 3) != 0) return;
      stream = m.storm.bag(Kind::kAclStream).put(m.random(), stream);
      RG_ACL(m, aclrtDestroyStreamForce, stream);
      break;
    case 2:
      RG_ACL(m, aclrtDestroyStream, some);
      break;
    case 3:
      RG_ACL(m, aclrtDestroyStreamForce, some);
      break;
    case 4:
      RG_ACL(m, aclrtSynchronizeStream, some);
      break;
    case 5:
      RG_ACL(m, aclrtSynchronizeStreamWithTimeout, some, static_cast<int32_t>(m.between(-2, 3)));
      break;
    case 6:
      RG_ACL(m, aclrtStreamQuery, some, m.chance(90) ? &status : nullptr);
      break;
    default:
      RG_ACL(m, aclrtStreamWaitEvent, some, m.handle<aclrtEvent>(Kind::kAclEvent));
  }
}

void events(Monkey& m) {
  aclrtEvent event = nullptr;
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  aclrtEventStatus status = ACL_EVENT_STATUS_COMPLETE;
  float ms = 0;
  auto* const some = m.handle<aclrtEvent>(Kind::kAclEvent);
  switch (m.between(0, 8)) {
    case 0:
    case 1:
      if (m.chance(50) ? RG_ACL(m, aclrtCreateEvent, m.chance(95) ? &event : nullptr)
                       : RG_ACL(m, aclrtCreateEventWithFlag, &event, static_cast<uint32_t>(m.random())))
        return;
      event = m.storm.bag(Kind::kAclEvent).put(m.random(), event);
      RG_ACL(m, aclrtDestroyEvent, event);
      break;
    case 2:
      RG_ACL(m, aclrtDestroyEvent, some);
      break;
    case 3:
      RG_ACL(m, aclrtRecordEvent, some, m.handle<aclrtStream>(Kind::kAclStream));
      break;
    case 4:
      RG_ACL(m, aclrtResetEvent, some, m.handle<aclrtStream>(Kind::kAclStream));
      break;
    case 5:
      RG_ACL(m, aclrtQueryEventStatus, some, m.chance(90) ? &recorded : nullptr);
      break;
    case 6:
      RG_ACL(m, aclrtQueryEvent, some, m.chance(90) ? &status : nullptr);
      break;
    case 7:
      RG_ACL(m, aclrtSynchronizeEvent, some);
      break;
    default:
      RG_ACL(m, aclrtEventElapsedTime, m.chance(90) ? &ms : nullptr, some,
             m.handle<aclrtEvent>(Kind::kAclEvent));
  }
}

// Blocks are allocated and freed and never touched: another thread may free them.
void memory(Monkey& m) {
  void* block = nullptr;
  const size_t sizes[] = {0, 1, 64, 4096, 1 << 20, SIZE_MAX, SIZE_MAX / 2};
  char* const data = m.storm.operands();
  const auto count = static_cast<size_t>(m.between(0, 4096)), room = static_cast<size_t>(m.between(0, 8192));
  const auto copy_kind = static_cast<aclrtMemcpyKind>(m.between(-1, 5));
  auto* const stream = m.handle<aclrtStream>(Kind::kAclStream);
  switch (m.between(0, 7)) {
    case 0:
      if (RG_ACL(m, aclrtMalloc, m.chance(95) ? &block : nullptr, m.one_of(sizes),
                 static_cast<aclrtMemMallocPolicy>(m.between(-1, 6))) != 0)
        return;
      RG_ACL(m, aclrtFree, m.storm.bag(Kind::kAclBlock).put(m.random(), block));
      break;
    case 1:
      if (RG_ACL(m, aclrtMallocHost, m.chance(95) ? &block : nullptr, m.one_of(sizes)) != 0) return;
      RG_ACL(m, aclrtFreeHost, m.storm.bag(Kind::kAclHostBlock).put(m.random(), block));
      break;
    case 2:
      RG_ACL(m, aclrtFree, m.handle(Kind::kAclBlock));
      break;
    case 3:
      RG_ACL(m, aclrtFreeHost, m.handle(Kind::kAclHostBlock));
      break;
    case 4:
      RG_ACL(m, aclrtMemcpy, m.chance(95) ? data : nullptr, room, data + 8192, count, copy_kind);
      break;
    case 5:
      RG_ACL(m, aclrtMemcpyAsync, data, room, m.chance(95) ? data + 8192 : nullptr, count, copy_kind, stream);
      break;
    case 6:
      RG_ACL(m, aclrtMemset, m.chance(95) ? data : nullptr, room, 0, count);
      break;
    default:
      RG_ACL(m, aclrtMemsetAsync, data, room, 0, count, stream);
  }
}

// Any view, with all its elements in the storm's operands.
aclTensor* new_tensor(Monkey& m, const std::vector<int64_t>& shape, aclDataType dtype) {
  std::vector<int64_t> strides;
  for (size_t i = 0; i < shape.size(); ++i) strides.push_back(m.between(-100, 100));
  const bool dense = m.chance(80), said = m.chance(70);
  const aclFormat by_rank[] = {ACL_FORMAT_ND,  ACL_FORMAT_ND,   ACL_FORMAT_ND,
                               ACL_FORMAT_NCL, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW};
  const aclFormat format =
      m.chance(95) && shape.size() < 6 ? by_rank[shape.size()] : static_cast<aclFormat>(m.between(-2, 50));
  return RG_CREATE(m, aclCreateTensor, shape.data(), shape.size(), dtype, dense ? nullptr : strides.data(),
                   m.chance(90) ? 0 : m.between(-500, 500), format, shape.data(), said ? shape.size() : 0,
                   m.chance(97) ? m.storm.operands() : nullptr);
}

// Destroys what it displaces: the number of live objects stays small.
template <class T, class Destroy>
void keep(Monkey& m, Kind kind, const T* object, const char* name, Destroy destroy) {
  if (object == nullptr) return;
  void* const before = m.storm.bag(kind).put(m.random(), const_cast<T*>(object));
  m.call(Family::kAclOperator, name, [&] { return destroy(static_cast<const T*>(before)); });
}
#define RG_KEEP(monkey, kind, object, destroy) keep(monkey, kind, object, #destroy, destroy)

void tensors(Monkey& m) {
  const aclDataType types[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_HIFLOAT8, ACL_DOUBLE};
  int64_t* sizes = nullptr;
  int64_t offset = 0;
  uint64_t count = 0;
  aclFormat format = ACL_FORMAT_ND;
  aclDataType dtype = ACL_FLOAT;
  auto* const tensor = m.handle<const aclTensor*>(Kind::kTensor);
  switch (m.between(0, 7)) {
    case 0: {
      std::vector<int64_t> shape(static_cast<size_t>(m.between(0, 9)));
      for (int64_t& size : shape) size = m.between(-1, 4);
      RG_KEEP(m, Kind::kTensor, new_tensor(m, shape, m.one_of(types)), aclDestroyTensor);
      break;
    }
    case 1:
      RG_ACLNN(m, aclDestroyTensor, tensor);
      break;
    case 2:
      if (RG_ACLNN(m, aclGetViewShape, tensor, &sizes, m.chance(90) ? &count : nullptr) == 0) delete[] sizes;
      break;
    case 3:
      if (RG_ACLNN(m, aclGetStorageShape, tensor, m.chance(90) ? &sizes : nullptr, &count) == 0)
        delete[] sizes;
      break;
    case 4:
      if (RG_ACLNN(m, aclGetViewStrides, tensor, &sizes, &count) == 0) delete[] sizes;
      break;
    case 5:
      RG_ACLNN(m, aclGetViewOffset, tensor, m.chance(90) ? &offset : nullptr);
      break;
    case 6:
      RG_ACLNN(m, aclGetFormat, tensor, m.chance(90) ? &format : nullptr);
      break;
    default:
      RG_ACLNN(m, aclGetDataType, tensor, m.chance(90) ? &dtype : nullptr);
  }
}

void arrays(Monkey& m) {
  const int64_t ints[8] = {1, 1, 0, 2, 3, -1, 1, 1};
  const float floats[8] = {};
  const bool bools[8] = {true, true, true};
  const aclTensor* list[4] = {};
  double value = 1;
  uint64_t size = 0;
  const uint64_t lengths[] = {0, 1, 2, 3, 4, 8, 1 << 20, UINT64_MAX};
  const uint64_t length = m.one_of(lengths);
  switch (m.between(0, 8)) {
    case 0:
      RG_KEEP(m, Kind::kIntArray, RG_CREATE(m, aclCreateIntArray, m.chance(95) ? ints : nullptr, length),
              aclDestroyIntArray);
      break;
    case 1:
      RG_KEEP(m, Kind::kFloatArray,
              RG_CREATE(m, aclCreateFloatArray, m.chance(95) ? floats : nullptr, length),
              aclDestroyFloatArray);
      break;
    case 2:
      RG_KEEP(m, Kind::kBoolArray, RG_CREATE(m, aclCreateBoolArray, m.chance(95) ? bools : nullptr, length),
              aclDestroyBoolArray);
      break;
    case 3:
      for (const aclTensor*& each : list) each = m.handle<const aclTensor*>(Kind::kTensor);
      RG_KEEP(m, Kind::kTensorList,
              RG_CREATE(m, aclCreateTensorList, list, static_cast<uint64_t>(m.between(0, 4))),
              aclDestroyTensorList);
      break;
    case 4:
      RG_KEEP(m, Kind::kScalar,
              RG_CREATE(m, aclCreateScalar, m.chance(90) ? &value : nullptr,
                        m.chance(80) ? ACL_DOUBLE : static_cast<aclDataType>(m.between(-2, 12))),
              aclDestroyScalar);
      break;
    case 5:
      RG_ACLNN(m, aclGetIntArraySize, m.handle<const aclIntArray*>(Kind::kIntArray), &size);
      RG_ACLNN(m, aclDestroyIntArray, m.handle<const aclIntArray*>(Kind::kIntArray));
      break;
    case 6:
      RG_ACLNN(m, aclGetFloatArraySize, m.handle<const aclFloatArray*>(Kind::kFloatArray), &size);
      RG_ACLNN(m, aclDestroyFloatArray, m.handle<const aclFloatArray*>(Kind::kFloatArray));
      break;
    case 7:
      RG_ACLNN(m, aclGetBoolArraySize, m.handle<const aclBoolArray*>(Kind::kBoolArray), &size);
      RG_ACLNN(m, aclDestroyBoolArray, m.handle<const aclBoolArray*>(Kind::kBoolArray));
      break;
    default:
      RG_ACLNN(m, aclGetTensorListSize, m.handle<const aclTensorList*>(Kind::kTensorList), &size);
      RG_ACLNN(m, aclDestroyTensorList, m.handle<const aclTensorList*>(Kind::kTensorList));
      RG_ACLNN(m, aclDestroyScalar, m.handle<const aclScalar*>(Kind::kScalar));
  }
}

void keep_executor(Monkey& m, aclOpExecutor* executor) {
  if (m.chance(50)) RG_ACLNN(m, aclSetAclOpExecutorRepeatable, executor);
  void* const before = m.storm.bag(Kind::kExecutor).put(m.random(), executor);
  if (before != nullptr) RG_ACLNN(m, aclDestroyAclOpExecutor, static_cast<aclOpExecutor*>(before));
}

enum class Operator : unsigned char { kConvolution, kConvTbc, kAvgPool2d, kAvgPool3d };

// gradOutput, input, weight, gradInput, gradWeight, gradBias; pooling has the first two and the fourth.
std::vector<std::vector<int64_t>> shapes_of(Monkey& m, Operator operation) {
  const int64_t c = m.between(1, 4), k = m.between(1, 4), in = m.between(2, 6), kernel = m.between(1, 2);
  const int64_t out = in - kernel + 1;
  std::vector<int64_t> x{2, c, in, in};
  switch (operation) {
    case Operator::kConvolution:
      return {{2, k, out, out}, x, {k, c, kernel, kernel}, x, {k, c, kernel, kernel}, {k}};
    case Operator::kConvTbc:
      x = {in, 2, c};
      return {{out, 2, k}, x, {kernel, c, k}, x, {kernel, c, k}, {k}};
    case Operator::kAvgPool3d:
      x.push_back(in);
      break;
    case Operator::kAvgPool2d:
      break;
  }
  return {x, x, {1}, x, {1}, {1}};
}

// Legal but for the handles that were changed for others.
void phase_one(Monkey& m) {
  const auto operation = static_cast<Operator>(std::max<int64_t>(m.between(-3, 3), 0));
  const auto shapes = shapes_of(m, operation);
  aclTensor *made[6], *tensors[6];
  for (size_t i = 0; i < 6; ++i) {
    made[i] = new_tensor(m, shapes[i], m.chance(97) ? ACL_FLOAT : ACL_FLOAT16);
    tensors[i] = m.chance(96) ? made[i] : m.handle<aclTensor*>(Kind::kTensor);
  }
  const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
  const bool all[3] = {true, true, true};
  const uint64_t count = operation == Operator::kAvgPool3d ? 1 : 2;
  auto* one = RG_CREATE(m, aclCreateIntArray, ones, count);
  auto* zero = RG_CREATE(m, aclCreateIntArray, zeros, count);
  auto* mask = RG_CREATE(m, aclCreateBoolArray, all, 3);
  auto* sizes = RG_CREATE(m, aclCreateIntArray, shapes[5].data(), 1);
  const auto array = [&](const aclIntArray* legal) {
    return m.chance(97) ? legal : m.handle<const aclIntArray*>(Kind::kIntArray);
  };
  const auto math = static_cast<int8_t>(m.chance(90) ? 0 : m.between(-1, 5));
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  aclOpExecutor** const out = m.chance(98) ? &executor : nullptr;
  int status = -1;
  const bool forward = m.chance(30);
  switch (operation) {
    case Operator::kConvTbc:
      status = forward ? RG_ACLNN(m, aclnnConvTbcGetWorkspaceSize, tensors[1], tensors[2], tensors[5], 0,
                                  tensors[0], math, &bytes, out)
                       : RG_ACLNN(m, aclnnConvTbcBackwardGetWorkspaceSize, tensors[0], tensors[1], tensors[2],
                                  tensors[5], 0, math, tensors[3], tensors[4], tensors[5], &bytes, out);
      break;
    case Operator::kAvgPool2d:
      status = forward ? RG_ACLNN(m, aclnnAvgPool2dGetWorkspaceSize, tensors[1], array(one), array(one),
                                  array(zero), m.chance(50), m.chance(50), m.between(-1, 1), math, tensors[0],
                                  &bytes, out)
                       : RG_ACLNN(m, aclnnAvgPool2dBackwardGetWorkspaceSize, tensors[0], tensors[1],
                                  array(one), array(one), array(zero), m.chance(50), m.chance(50),
                                  m.between(-1, 1), math, tensors[3], &bytes, out);
      break;
    case Operator::kAvgPool3d:
      status = forward ? RG_ACLNN(m, aclnnAvgPool3dGetWorkspaceSize, tensors[1], array(one), array(one),
                                  array(zero), m.chance(50), m.chance(50), m.between(-1, 1), tensors[0],
                                  &bytes, out)
                       : RG_ACLNN(m, aclnnAvgPool3dBackwardGetWorkspaceSize, tensors[0], tensors[1],
                                  array(one), array(one), array(zero), m.chance(50), m.chance(50),
                                  m.between(-1, 1), tensors[3], &bytes, out);
      break;
    case Operator::kConvolution:
      status = forward ? RG_ACLNN(m, aclnnConvolutionGetWorkspaceSize, tensors[1], tensors[2],
                                  m.chance(50) ? tensors[5] : nullptr, array(one), array(zero), array(one),
                                  false, array(zero), m.chance(95) ? 1 : 0, tensors[0], math, &bytes, out)
                       : RG_ACLNN(m, aclnnConvolutionBackwardGetWorkspaceSize, tensors[0], tensors[1],
                                  tensors[2], array(sizes), array(one), array(zero), array(one), false,
                                  array(zero), m.chance(95) ? 1 : 0,
                                  m.chance(97) ? mask : m.handle<const aclBoolArray*>(Kind::kBoolArray), math,
                                  tensors[3], tensors[4], tensors[5], &bytes, out);
  }
  if (status == 0) keep_executor(m, executor);
  for (aclTensor* tensor : made) RG_KEEP(m, Kind::kTensor, tensor, aclDestroyTensor);
  for (aclIntArray* each : {one, zero, sizes}) RG_KEEP(m, Kind::kIntArray, each, aclDestroyIntArray);
  RG_KEEP(m, Kind::kBoolArray, mask, aclDestroyBoolArray);
}

void phase_two(Monkey& m) {
  auto* const executor = m.handle<aclOpExecutor*>(Kind::kExecutor);
  auto* const stream = m.handle<aclrtStream>(Kind::kAclStream);
  const uint64_t bytes = m.chance(95) ? kWorkspaceBytes : 0;
  void* const room = m.chance(95) ? workspace() : nullptr;
  int status = -1;
  switch (m.between(0, 9)) {
    case 6:
      status = RG_ACLNN(m, aclnnConvTbc, room, bytes, executor, stream);
      break;
    case 7:
      status = RG_ACLNN(m, aclnnAvgPool2d, room, bytes, executor, stream);
      break;
    case 8:
      status = RG_ACLNN(m, aclnnAvgPool3d, room, bytes, executor, stream);
      break;
    case 9:
      status = RG_ACLNN(m, aclnnConvolution, room, bytes, executor, stream);
      break;
    case 0:
      status = RG_ACLNN(m, aclnnConvTbcBackward, room, bytes, executor, stream);
      break;
    case 1:
      status = RG_ACLNN(m, aclnnAvgPool2dBackward, room, bytes, executor, stream);
      break;
    case 2:
      status = RG_ACLNN(m, aclnnAvgPool3dBackward, room, bytes, executor, stream);
      break;
    default:
      status = RG_ACLNN(m, aclnnConvolutionBackward, room, bytes, executor, stream);
  }
  // The workspace is free when the stream got there. A stream that died meanwhile was finished by who ended
  // it, at the latest when the last call that uses it has returned.
  if (status == 0 && RG_ACL(m, aclrtSynchronizeStream, stream) != 0) m.storm.calls.drain();
}

void executors(Monkey& m) {
  auto* const executor = m.handle<aclOpExecutor*>(Kind::kExecutor);
  auto* const tensor = m.handle<aclTensor*>(Kind::kTensor);
  void* const data = m.chance(90) ? m.storm.operands() : nullptr;
  const auto index = static_cast<size_t>(m.between(0, 8));
  switch (m.between(0, 4)) {
    case 0:
      RG_ACLNN(m, aclSetInputTensorAddr, executor, index, tensor, data);
      break;
    case 1:
      RG_ACLNN(m, aclSetOutputTensorAddr, executor, index, tensor, data);
      break;
    case 2:
      RG_ACLNN(m, aclSetTensorAddr, executor, index, tensor, data);
      break;
    case 3:
      RG_ACLNN(m, aclSetAclOpExecutorRepeatable, executor);
      break;
    default:
      RG_ACLNN(m, aclDestroyAclOpExecutor, executor);
  }
}

}  // namespace

// Another thread may have finalised, or taken the device away: half of the time that is put right first.
void acl_monkey(Monkey& m) {
  if (m.chance(50) && m.last_status == ACL_ERROR_UNINITIALIZE) RG_ACL(m, aclInit, nullptr);
  if (m.chance(50) &&
      (m.last_status == ACL_ERROR_RT_CONTEXT_NULL || m.last_status == ACL_ERROR_REPEAT_INITIALIZE))
    RG_ACL(m, aclrtSetDevice, 0);
  void (*const kinds[])(Monkey&) = {devices,   streams,   streams,   events,    events,
                                    memory,    memory,    tensors,   arrays,    phase_one,
                                    phase_one, phase_two, phase_two, phase_two, executors};
  m.one_of(kinds)(m);
}

void lifecycle_monkey(Monkey& m, bool leads) {
  aclrtContext context = nullptr;
  auto* const some = m.handle<aclrtContext>(Kind::kAclContext);
  const auto device = static_cast<int32_t>(m.chance(90) ? 0 : m.between(-1, 3));
  switch (m.between(0, 11)) {
    case 0:
      RG_ACL(m, aclInit, m.chance(80) ? nullptr : m.chance(50) ? "/nonexistent" : "/proc/self/stat");
      break;
    case 1:
      if (leads) RG_ACL(m, aclFinalize);
      RG_ACL(m, aclInit, nullptr);
      break;
    case 2:
      RG_ACL(m, aclrtResetDevice, device);
      break;
    case 3:
      RG_ACL(m, aclrtResetDeviceForce, device);
      break;
    case 4:
      if (RG_ACL(m, aclrtCreateContext, m.chance(95) ? &context : nullptr, device) != 0) return;
      context = m.storm.bag(Kind::kAclContext).put(m.random(), context);
      RG_ACL(m, aclrtDestroyContext, context);
      break;
    case 5:
      RG_ACL(m, aclrtDestroyContext, some);
      break;
    case 6:
      RG_ACL(m, aclrtSetCurrentContext, some);
      break;
    case 7:
      RG_ACL(m, aclrtGetCurrentContext, m.chance(95) ? &context : nullptr);
      break;
    default:
      RG_ACL(m, aclrtSetDevice, device);
  }
}

}  // namespace retrograd::soak
