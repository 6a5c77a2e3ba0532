// SPDX-License-Identifier: Apache-2.0
// The acl and aclnn functions of exports.txt.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "exported_calls.h"

namespace retrograd::test {
namespace {

constexpr int kRuntime = kAclOutOfMemory, kObject = kAclnnOutOfMemory;

using List = std::initializer_list<int64_t>;

// All that a row may have made; what is null is not there.
struct State {
  bool initialised = false;
  aclrtContext context = nullptr;
  aclrtStream stream = nullptr;
  aclrtEvent start = nullptr, end = nullptr;
  void *block = nullptr, *host_block = nullptr;
  aclTensor* tensors[8] = {};
  const aclIntArray* arrays[8] = {};
  const aclBoolArray* mask = nullptr;
  const aclFloatArray* floats = nullptr;
  const aclScalar* scalar = nullptr;
  const aclTensorList* list = nullptr;
  aclOpExecutor* executor = nullptr;
  uint64_t workspace_size = 0;
};
State s;

std::byte source[64], destination[64];
float data[8][4096];
std::byte workspace[1 << 20];

// What aclFinalize ends with the runtime.
void forget_runtime() {
  s.initialised = false;
  s.context = s.stream = s.start = s.end = s.block = s.host_block = nullptr;
}

void teardown() {
  if (s.executor != nullptr) aclDestroyAclOpExecutor(s.executor);
  if (s.list != nullptr) aclDestroyTensorList(s.list);
  for (const aclTensor* tensor : s.tensors) aclDestroyTensor(tensor);
  for (const aclIntArray* array : s.arrays) aclDestroyIntArray(array);
  aclDestroyBoolArray(s.mask);
  aclDestroyFloatArray(s.floats);
  aclDestroyScalar(s.scalar);
  if (s.initialised) require(aclFinalize() == 0, "aclFinalize");
  s = State();
}

void nothing() {}

void initialised() {
  require(aclInit(nullptr) == 0, "aclInit");
  s.initialised = true;
}

void on_device() {
  initialised();
  require(aclrtSetDevice(0) == 0, "aclrtSetDevice");
}

// A context of its own, a stream in it, two recorded events, a block of either kind.
void with_stream() {
  on_device();
  require(aclrtCreateContext(&s.context, 0) == 0, "aclrtCreateContext");
  require(aclrtCreateStream(&s.stream) == 0, "aclrtCreateStream");
  require(aclrtCreateEvent(&s.start) == 0 && aclrtCreateEvent(&s.end) == 0, "aclrtCreateEvent");
  require(aclrtRecordEvent(s.start, s.stream) == 0 && aclrtRecordEvent(s.end, s.stream) == 0,
          "aclrtRecordEvent");
  require(aclrtSynchronizeStream(s.stream) == 0, "aclrtSynchronizeStream");
  require(aclrtMalloc(&s.block, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0, "aclrtMalloc");
  require(aclrtMallocHost(&s.host_block, 64) == 0, "aclrtMallocHost");
}

aclTensor* tensor(List shape, void* values, aclDataType type = ACL_FLOAT) {
  const aclFormat format = shape.size() == 4   ? ACL_FORMAT_NCHW
                           : shape.size() == 5 ? ACL_FORMAT_NCDHW
                                               : ACL_FORMAT_ND;
  return aclCreateTensor(shape.begin(), shape.size(), type, nullptr, 0, format, shape.begin(), shape.size(),
                         values);
}

void keep_tensor(List shape, aclDataType type = ACL_FLOAT) {
  size_t i = 0;
  while (s.tensors[i] != nullptr) ++i;
  s.tensors[i] = tensor(shape, data[i], type);
  require(s.tensors[i] != nullptr, "aclCreateTensor");
}

void keep_array(List values) {
  size_t i = 0;
  while (s.arrays[i] != nullptr) ++i;
  s.arrays[i] = aclCreateIntArray(values.begin(), values.size());
  require(s.arrays[i] != nullptr, "aclCreateIntArray");
}

constexpr bool kAll[] = {true, true, true};
constexpr float kFloats[] = {1, 2, 3};

void objects() {
  keep_tensor({2, 3});
  keep_array({1, 2, 3});
  s.mask = aclCreateBoolArray(kAll, 3);
  s.floats = aclCreateFloatArray(kFloats, 3);
  s.scalar = aclCreateScalar(data[0], ACL_FLOAT);
  const aclTensor* listed[] = {tensor({4}, nullptr), nullptr};
  s.list = aclCreateTensorList(listed, 2);
  require(s.mask && s.floats && s.scalar && s.list, "objects");
}

// Convolutions: gradOutput, input, weight, gradInput, gradWeight, gradBias.
void conv_tensors(List y, List x, List w, int64_t bias, aclDataType type = ACL_FLOAT) {
  on_device();
  for (const List shape : {y, x, w, x, w}) keep_tensor(shape, type);
  keep_tensor({bias}, type);
  s.mask = aclCreateBoolArray(kAll, 3);
}
// biasSizes, stride, padding, dilation, outputPadding.
void conv_arrays(int64_t bias, List stride, List padding, List dilation, List output_padding) {
  keep_array({bias});
  for (const List values : {stride, padding, dilation, output_padding}) keep_array(values);
}

void small_conv() {
  conv_tensors({1, 4, 6, 6}, {1, 3, 6, 6}, {4, 3, 3, 3}, 4);
  conv_arrays(4, {1, 1}, {1, 1}, {1, 1}, {0, 0});
}
void dense_conv() {
  conv_tensors({2, 64, 14, 14}, {2, 64, 14, 14}, {64, 64, 3, 3}, 64);
  conv_arrays(64, {1, 1}, {1, 1}, {1, 1}, {0, 0});
}
void bf16_conv() {
  conv_tensors({2, 64, 7, 7}, {2, 64, 14, 14}, {64, 64, 3, 3}, 64, ACL_BF16);
  conv_arrays(64, {2, 2}, {1, 1}, {1, 1}, {0, 0});
}
void depthwise_conv() {
  conv_tensors({2, 32, 14, 14}, {2, 32, 14, 14}, {32, 1, 3, 3}, 32);
  conv_arrays(32, {1, 1}, {1, 1}, {1, 1}, {0, 0});
}
void transposed_conv() {
  conv_tensors({1, 5, 9, 9}, {1, 3, 4, 4}, {3, 5, 3, 3}, 5);
  conv_arrays(5, {2, 2}, {0, 0}, {1, 1}, {0, 0});
}
// biasSizes that the log warns about.
void warned_conv() {
  conv_tensors({1, 4, 6, 6}, {1, 3, 6, 6}, {4, 3, 3, 3}, 4);
  conv_arrays(5, {1, 1}, {1, 1}, {1, 1}, {0, 0});
}
void wrong_conv() {
  conv_tensors({1, 4, 6, 7}, {1, 3, 6, 6}, {4, 3, 3, 3}, 4);
  conv_arrays(4, {1, 1}, {1, 1}, {1, 1}, {0, 0});
}

int plan_conv(int groups, bool transposed, int8_t math, uint64_t* size, aclOpExecutor** executor) {
  const auto& t = s.tensors;
  const auto& a = s.arrays;
  return aclnnConvolutionBackwardGetWorkspaceSize(t[0], t[1], t[2], a[0], a[1], a[2], a[3], transposed, a[4],
                                                  groups, s.mask, math, t[3], t[4], t[5], size, executor);
}
int write_conv(int groups, bool transposed, int8_t math) {
  return plan_conv(groups, transposed, math, &written.number,
                   reinterpret_cast<aclOpExecutor**>(&written.pointer));
}

void tbc() {
  on_device();
  for (const List shape : {List{5, 2, 4}, {6, 2, 3}, {4, 3, 4}, {4}, {6, 2, 3}, {4, 3, 4}, {4}})
    keep_tensor(shape);
}
int plan_tbc(uint64_t* size, aclOpExecutor** executor) {
  const auto& t = s.tensors;
  return aclnnConvTbcBackwardGetWorkspaceSize(t[0], t[1], t[2], t[3], 1, 0, t[4], t[5], t[6], size, executor);
}

// gradOutput, self, gradInput; kernel, stride, padding.
void pool(List y, List x, List kernel, List padding) {
  on_device();
  for (const List shape : {y, x, x}) keep_tensor(shape);
  for (const List values : {kernel, kernel, padding}) keep_array(values);
}
void pool_2d() { pool({1, 2, 3, 3}, {1, 2, 6, 6}, {2, 2}, {0, 0}); }
void pool_3d() { pool({1, 2, 2, 2, 2}, {1, 2, 4, 4, 4}, {2, 2, 2}, {0, 0, 0}); }
int plan_pool_2d(uint64_t* size, aclOpExecutor** executor) {
  const auto& t = s.tensors;
  return aclnnAvgPool2dBackwardGetWorkspaceSize(t[0], t[1], s.arrays[0], s.arrays[1], s.arrays[2], false,
                                                true, 0, 0, t[2], size, executor);
}
int plan_pool_3d(uint64_t* size, aclOpExecutor** executor) {
  const auto& t = s.tensors;
  return aclnnAvgPool3dBackwardGetWorkspaceSize(t[0], t[1], s.arrays[0], s.arrays[1], s.arrays[2], false,
                                                true, 0, t[2], size, executor);
}

// Forward: input, weight, bias, output; stride, padding, dilation, outputPadding.
void forward_conv() {
  on_device();
  for (const List shape : {List{1, 3, 6, 6}, {4, 3, 3, 3}, {4}, {1, 4, 6, 6}}) keep_tensor(shape);
  for (const List values : {List{1, 1}, {1, 1}, {1, 1}, {0, 0}}) keep_array(values);
}
int plan_forward_conv(uint64_t* size, aclOpExecutor** executor) {
  const auto& t = s.tensors;
  const auto& a = s.arrays;
  return aclnnConvolutionGetWorkspaceSize(t[0], t[1], t[2], a[0], a[1], a[2], false, a[3], 1, t[3], 0, size,
                                          executor);
}
void forward_tbc() {
  on_device();
  for (const List shape : {List{6, 2, 3}, {4, 3, 4}, {4}, {5, 2, 4}}) keep_tensor(shape);
}
int plan_forward_tbc(uint64_t* size, aclOpExecutor** executor) {
  const auto& t = s.tensors;
  return aclnnConvTbcGetWorkspaceSize(t[0], t[1], t[2], 1, t[3], 0, size, executor);
}
int plan_forward_pool_2d(uint64_t* size, aclOpExecutor** executor) {
  const auto& t = s.tensors;
  return aclnnAvgPool2dGetWorkspaceSize(t[1], s.arrays[0], s.arrays[1], s.arrays[2], false, true, 0, 0, t[0],
                                        size, executor);
}
int plan_forward_pool_3d(uint64_t* size, aclOpExecutor** executor) {
  const auto& t = s.tensors;
  return aclnnAvgPool3dGetWorkspaceSize(t[1], s.arrays[0], s.arrays[1], s.arrays[2], false, true, 0, t[0],
                                        size, executor);
}

void check_plan(int code) { require(code == 0 && s.workspace_size <= sizeof workspace, "phase one"); }
void planned_conv() {
  small_conv();
  check_plan(plan_conv(1, false, 0, &s.workspace_size, &s.executor));
}
void planned_tbc() {
  tbc();
  check_plan(plan_tbc(&s.workspace_size, &s.executor));
}
void planned_pool_2d() {
  pool_2d();
  check_plan(plan_pool_2d(&s.workspace_size, &s.executor));
}
void planned_pool_3d() {
  pool_3d();
  check_plan(plan_pool_3d(&s.workspace_size, &s.executor));
}
void planned_forward_conv() {
  forward_conv();
  check_plan(plan_forward_conv(&s.workspace_size, &s.executor));
}
void planned_forward_tbc() {
  forward_tbc();
  check_plan(plan_forward_tbc(&s.workspace_size, &s.executor));
}
void planned_forward_pool_2d() {
  pool_2d();
  check_plan(plan_forward_pool_2d(&s.workspace_size, &s.executor));
}
void planned_forward_pool_3d() {
  pool_3d();
  check_plan(plan_forward_pool_3d(&s.workspace_size, &s.executor));
}
void repeatable_conv() {
  planned_conv();
  require(aclSetAclOpExecutorRepeatable(s.executor) == 0, "aclSetAclOpExecutorRepeatable");
}

using PhaseTwo = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, const aclrtStream);
int run(PhaseTwo phase_two) {
  const int code = phase_two(workspace, s.workspace_size, s.executor, nullptr);
  if (code == 0) s.executor = nullptr;  // it is used up
  return code;
}
void finish() { require(aclrtSynchronizeStream(nullptr) == 0, "aclrtSynchronizeStream"); }

// A create call's null is what its message says it is.
template <class T>
int made(T* object) {
  if (object == nullptr) return kObject;
  written.pointer = const_cast<void*>(static_cast<const void*>(object));
  return 0;
}
// An object that the call ends, if it succeeded.
template <class T>
int ended(int code, T*& object) {
  if (code == 0) object = nullptr;
  return code;
}
template <class T>
T* handle() {
  return static_cast<T*>(written.pointer);
}

void destroy_plan() { aclDestroyAclOpExecutor(handle<aclOpExecutor>()); }
void destroy_stream() { require(aclrtDestroyStream(written.pointer) == 0, "aclrtDestroyStream"); }
void destroy_event() { require(aclrtDestroyEvent(written.pointer) == 0, "aclrtDestroyEvent"); }
void delete_dims() { delete[] handle<int64_t>(); }

int64_t** dims_out() { return reinterpret_cast<int64_t**>(&written.pointer); }

void pending_error() { require(aclrtSetDevice(0) == ACL_ERROR_UNINITIALIZE, "a failure"); }

// With a value of another kind, which is warned about.
const char* config_file() {
  static const char* const path = [] {
    static char name[] = "/tmp/retrograd_config_XXXXXX";
    const int file = mkstemp(name);
    FILE* const out = file < 0 ? nullptr : fdopen(file, "w");
    require(out != nullptr, "mkstemp");
    std::fputs(R"({"RETROGRAD_DEVICE": ["cpu", {"a": 1}], "others": {"list": [1, 2.5, null, true]}})", out);
    std::fclose(out);
    std::atexit([] { std::remove(name); });
    return name;
  }();
  return path;
}
void config() { config_file(); }
void finalise() { require(aclFinalize() == 0, "aclFinalize"); }

const ExportedCall kCalls[] = {
    {"aclInit", kRuntime, nothing, [] { return aclInit(nullptr); }, finalise, teardown},
    {"aclInit", kRuntime, config, [] { return aclInit(config_file()); }, finalise, teardown},
    {"aclInit", kRuntime, nothing, [] { return aclInit("/nowhere/at/all/and/a/long/name"); }, nullptr,
     teardown, ACL_ERROR_INVALID_FILE},
    {"aclFinalize", kRuntime, with_stream,
     [] {
       const int code = aclFinalize();
       if (code == 0) forget_runtime();
       return code;
     },
     nullptr, teardown},
    {"aclGetRecentErrMsg", kRuntime, pending_error, [] { return aclGetRecentErrMsg() == nullptr ? 1 : 0; },
     nullptr, teardown},
    {"aclrtGetVersion", kRuntime, nothing,
     [] {
       int32_t version[3];
       return aclrtGetVersion(version, version + 1, version + 2);
     },
     nullptr, teardown},
    {"aclrtGetSocName", kRuntime, nothing, [] { return *aclrtGetSocName() == '\0' ? 1 : 0; }, nullptr,
     teardown},

    {"aclrtSetDevice", kRuntime, initialised, [] { return aclrtSetDevice(0); }, nullptr, teardown},
    {"aclrtSetDevice", kRuntime, initialised, [] { return aclrtSetDevice(77); }, nullptr, teardown,
     ACL_ERROR_RT_INVALID_DEVICEID},
    {"aclrtSetDevice", kRuntime, nothing, [] { return aclrtSetDevice(0); }, nullptr, teardown,
     ACL_ERROR_UNINITIALIZE},
    {"aclrtResetDevice", kRuntime,
     [] {
       on_device();
       require(aclrtCreateStream(&s.stream) == 0, "aclrtCreateStream");
     },
     [] { return aclrtResetDevice(0); }, nullptr, teardown},
    {"aclrtResetDeviceForce", kRuntime,
     [] {
       on_device();
       require(aclrtSetDevice(0) == 0 && aclrtCreateStream(&s.stream) == 0, "aclrtCreateStream");
     },
     [] { return aclrtResetDeviceForce(0); }, nullptr, teardown},
    {"aclrtGetDevice", kRuntime, on_device,
     [] { return aclrtGetDevice(reinterpret_cast<int32_t*>(&written.number)); }, nullptr, teardown},
    {"aclrtGetDeviceCount", kRuntime, nothing,
     [] { return aclrtGetDeviceCount(reinterpret_cast<uint32_t*>(&written.number)); }, nullptr, teardown},
    {"aclrtGetRunMode", kRuntime, initialised,
     [] { return aclrtGetRunMode(reinterpret_cast<aclrtRunMode*>(&written.number)); }, nullptr, teardown},
    {"aclrtSynchronizeDevice", kRuntime, with_stream, [] { return aclrtSynchronizeDevice(); }, nullptr,
     teardown},
    {"aclrtGetPrimaryCtxState", kRuntime, on_device,
     [] {
       uint32_t flags = 1;
       int32_t active = 0;
       return aclrtGetPrimaryCtxState(0, &flags, &active);
     },
     nullptr, teardown},
    {"aclrtSetDeviceSatMode", kRuntime, initialised,
     [] { return aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN); }, nullptr, teardown},
    {"aclrtSetOpExecuteTimeOut", kRuntime, initialised, [] { return aclrtSetOpExecuteTimeOut(5); }, nullptr,
     teardown},
    {"aclSetCompileopt", kRuntime, initialised,
     [] { return aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable"); }, nullptr, teardown},
    {"aclGetCompileoptSize", kRuntime, nothing,
     [] { return aclGetCompileoptSize(ACL_OP_JIT_COMPILE) == 1 ? 0 : 1; }, nullptr, teardown},
    {"aclGetCompileopt", kRuntime, initialised,
     [] {
       char value[1];
       return aclGetCompileopt(ACL_OP_JIT_COMPILE, value, sizeof value);
     },
     nullptr, teardown},
    {"aclrtGetMemInfo", kRuntime, on_device,
     [] { return aclrtGetMemInfo(ACL_HBM_MEM, &written.number, &written.number); }, nullptr, teardown},

    {"aclrtCreateContext", kRuntime, initialised, [] { return aclrtCreateContext(&written.pointer, 0); },
     [] { require(aclrtDestroyContext(written.pointer) == 0, "aclrtDestroyContext"); }, teardown},
    {"aclrtDestroyContext", kRuntime, with_stream,
     [] { return ended(aclrtDestroyContext(s.context), s.context); }, nullptr, teardown},
    {"aclrtSetCurrentContext", kRuntime, with_stream, [] { return aclrtSetCurrentContext(s.context); },
     nullptr, teardown},
    {"aclrtGetCurrentContext", kRuntime, with_stream, [] { return aclrtGetCurrentContext(&written.pointer); },
     nullptr, teardown},
    {"aclrtCtxSetSysParamOpt", kRuntime, on_device,
     [] { return aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1); }, nullptr, teardown},
    {"aclrtCtxGetSysParamOpt", kRuntime,
     [] {
       on_device();
       require(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1) == 0, "aclrtCtxSetSysParamOpt");
     },
     [] {
       return aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, reinterpret_cast<int64_t*>(&written.number));
     },
     nullptr, teardown},
    {"aclrtSetSysParamOpt", kRuntime, initialised,
     [] { return aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1); }, nullptr, teardown},
    {"aclrtGetSysParamOpt", kRuntime, initialised,
     [] { return aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, reinterpret_cast<int64_t*>(&written.number)); },
     nullptr, teardown},

    {"aclrtCreateStream", kRuntime, on_device, [] { return aclrtCreateStream(&written.pointer); },
     destroy_stream, teardown},
    {"aclrtCreateStreamWithConfig", kRuntime, on_device,
     [] { return aclrtCreateStreamWithConfig(&written.pointer, 0, 0); }, destroy_stream, teardown},
    {"aclrtDestroyStream", kRuntime, with_stream,
     [] { return ended(aclrtDestroyStream(s.stream), s.stream); }, nullptr, teardown},
    {"aclrtDestroyStreamForce", kRuntime, with_stream,
     [] { return ended(aclrtDestroyStreamForce(s.stream), s.stream); }, nullptr, teardown},
    {"aclrtSynchronizeStream", kRuntime, with_stream, [] { return aclrtSynchronizeStream(s.stream); },
     nullptr, teardown},
    {"aclrtSynchronizeStreamWithTimeout", kRuntime, with_stream,
     [] { return aclrtSynchronizeStreamWithTimeout(s.stream, 1000); }, nullptr, teardown},
    {"aclrtStreamQuery", kRuntime, with_stream,
     [] { return aclrtStreamQuery(s.stream, reinterpret_cast<aclrtStreamStatus*>(&written.number)); },
     nullptr, teardown},
    {"aclrtStreamWaitEvent", kRuntime, with_stream, [] { return aclrtStreamWaitEvent(s.stream, s.start); },
     nullptr, teardown},

    {"aclrtCreateEvent", kRuntime, on_device, [] { return aclrtCreateEvent(&written.pointer); },
     destroy_event, teardown},
    {"aclrtCreateEventWithFlag", kRuntime, on_device,
     [] { return aclrtCreateEventWithFlag(&written.pointer, ACL_EVENT_TIME_LINE); }, destroy_event, teardown},
    {"aclrtDestroyEvent", kRuntime, with_stream, [] { return ended(aclrtDestroyEvent(s.start), s.start); },
     nullptr, teardown},
    {"aclrtRecordEvent", kRuntime, with_stream, [] { return aclrtRecordEvent(s.start, s.stream); }, nullptr,
     teardown},
    {"aclrtResetEvent", kRuntime, with_stream, [] { return aclrtResetEvent(s.start, s.stream); }, nullptr,
     teardown},
    {"aclrtQueryEventStatus", kRuntime, with_stream,
     [] {
       return aclrtQueryEventStatus(s.start, reinterpret_cast<aclrtEventRecordedStatus*>(&written.number));
     },
     nullptr, teardown},
    {"aclrtQueryEvent", kRuntime, with_stream,
     [] { return aclrtQueryEvent(s.start, reinterpret_cast<aclrtEventStatus*>(&written.number)); }, nullptr,
     teardown},
    {"aclrtSynchronizeEvent", kRuntime, with_stream, [] { return aclrtSynchronizeEvent(s.start); }, nullptr,
     teardown},
    {"aclrtEventElapsedTime", kRuntime, with_stream,
     [] { return aclrtEventElapsedTime(reinterpret_cast<float*>(&written.number), s.start, s.end); }, nullptr,
     teardown},

    {"aclrtMalloc", kRuntime, on_device,
     [] { return aclrtMalloc(&written.pointer, 64, ACL_MEM_MALLOC_HUGE_FIRST); },
     [] { require(aclrtFree(written.pointer) == 0, "aclrtFree"); }, teardown},
    {"aclrtMalloc", kRuntime, on_device,
     [] { return aclrtMalloc(&written.pointer, 0, ACL_MEM_MALLOC_HUGE_FIRST); }, nullptr, teardown,
     ACL_ERROR_INVALID_PARAM},
    {"aclrtFree", kRuntime, with_stream, [] { return ended(aclrtFree(s.block), s.block); }, nullptr,
     teardown},
    {"aclrtFree", kRuntime, with_stream, [] { return aclrtFree(source); }, nullptr, teardown,
     ACL_ERROR_RT_PARAM_INVALID},
    {"aclrtMallocHost", kRuntime, on_device, [] { return aclrtMallocHost(&written.pointer, 64); },
     [] { require(aclrtFreeHost(written.pointer) == 0, "aclrtFreeHost"); }, teardown},
    {"aclrtFreeHost", kRuntime, with_stream, [] { return ended(aclrtFreeHost(s.host_block), s.host_block); },
     nullptr, teardown},
    {"aclrtMemcpy", kRuntime, on_device,
     [] { return aclrtMemcpy(destination, 64, source, 64, ACL_MEMCPY_HOST_TO_HOST); }, nullptr, teardown},
    {"aclrtMemcpyAsync", kRuntime, with_stream,
     [] { return aclrtMemcpyAsync(destination, 64, source, 64, ACL_MEMCPY_HOST_TO_HOST, s.stream); }, nullptr,
     teardown},
    {"aclrtMemset", kRuntime, on_device, [] { return aclrtMemset(destination, 64, 0, 64); }, nullptr,
     teardown},
    {"aclrtMemsetAsync", kRuntime, with_stream,
     [] { return aclrtMemsetAsync(destination, 64, 0, 64, s.stream); }, nullptr, teardown},

    {"aclDataTypeSize", kRuntime, nothing, [] { return aclDataTypeSize(ACL_FLOAT) == 4 ? 0 : 1; }, nullptr,
     teardown},
    {"aclFloat16ToFloat", kRuntime, nothing, [] { return aclFloat16ToFloat(0) == 0.0F ? 0 : 1; }, nullptr,
     teardown},
    {"aclFloatToFloat16", kRuntime, nothing, [] { return aclFloatToFloat16(0.0F) == 0 ? 0 : 1; }, nullptr,
     teardown},
    {"aclnnInit", kObject, config, [] { return aclnnInit(config_file()); }, nullptr, teardown},
    {"aclnnFinalize", kObject, nothing, [] { return aclnnFinalize(); }, nullptr, teardown},
    {"InitHugeMemThreadLocal", kObject, nothing, [] { return InitHugeMemThreadLocal(nullptr, false); },
     nullptr, teardown},
    {"UnInitHugeMemThreadLocal", kObject, nothing,
     [] {
       UnInitHugeMemThreadLocal(nullptr, false);
       return 0;
     },
     nullptr, teardown},
    {"ReleaseHugeMem", kObject, nothing,
     [] {
       ReleaseHugeMem(nullptr, false);
       return 0;
     },
     nullptr, teardown},

    {"aclCreateTensor", kObject, nothing,
     [] {
       return made(tensor({2, 3, 4, 5}, nullptr));
     },
     [] { aclDestroyTensor(handle<aclTensor>()); }, teardown},
    {"aclCreateScalar", kObject, nothing, [] { return made(aclCreateScalar(data[0], ACL_FLOAT)); },
     [] { aclDestroyScalar(handle<aclScalar>()); }, teardown},
    {"aclCreateIntArray", kObject, nothing,
     [] {
       constexpr int64_t kValues[] = {1, 2};
       return made(aclCreateIntArray(kValues, 2));
     },
     [] { aclDestroyIntArray(handle<aclIntArray>()); }, teardown},
    {"aclCreateBoolArray", kObject, nothing, [] { return made(aclCreateBoolArray(kAll, 3)); },
     [] { aclDestroyBoolArray(handle<aclBoolArray>()); }, teardown},
    {"aclCreateFloatArray", kObject, nothing, [] { return made(aclCreateFloatArray(kFloats, 3)); },
     [] { aclDestroyFloatArray(handle<aclFloatArray>()); }, teardown},
    // A list's destroy destroys its tensors.
    {"aclCreateTensorList", kObject, [] { keep_tensor({4}); },
     [] { return made(aclCreateTensorList(s.tensors, 1)); },
     [] {
       aclDestroyTensorList(handle<aclTensorList>());
       s.tensors[0] = nullptr;
     },
     teardown},
    {"aclDestroyTensor", kObject, objects, [] { return ended(aclDestroyTensor(s.tensors[0]), s.tensors[0]); },
     nullptr, teardown},
    {"aclDestroyTensor", kObject, nothing,
     [] { return aclDestroyTensor(reinterpret_cast<aclTensor*>(data)); }, nullptr, teardown, 561103},
    {"aclDestroyScalar", kObject, objects, [] { return ended(aclDestroyScalar(s.scalar), s.scalar); },
     nullptr, teardown},
    {"aclDestroyIntArray", kObject, objects,
     [] { return ended(aclDestroyIntArray(s.arrays[0]), s.arrays[0]); }, nullptr, teardown},
    {"aclDestroyBoolArray", kObject, objects, [] { return ended(aclDestroyBoolArray(s.mask), s.mask); },
     nullptr, teardown},
    {"aclDestroyFloatArray", kObject, objects, [] { return ended(aclDestroyFloatArray(s.floats), s.floats); },
     nullptr, teardown},
    {"aclDestroyTensorList", kObject, objects, [] { return ended(aclDestroyTensorList(s.list), s.list); },
     nullptr, teardown},
    {"aclGetViewShape", kObject, objects,
     [] { return aclGetViewShape(s.tensors[0], dims_out(), &written.number); }, delete_dims, teardown},
    {"aclGetStorageShape", kObject, objects,
     [] { return aclGetStorageShape(s.tensors[0], dims_out(), &written.number); }, delete_dims, teardown},
    {"aclGetViewStrides", kObject, objects,
     [] { return aclGetViewStrides(s.tensors[0], dims_out(), &written.number); }, delete_dims, teardown},
    {"aclGetViewOffset", kObject, objects,
     [] { return aclGetViewOffset(s.tensors[0], reinterpret_cast<int64_t*>(&written.number)); }, nullptr,
     teardown},
    {"aclGetFormat", kObject, objects,
     [] { return aclGetFormat(s.tensors[0], reinterpret_cast<aclFormat*>(&written.number)); }, nullptr,
     teardown},
    {"aclGetDataType", kObject, objects,
     [] { return aclGetDataType(s.tensors[0], reinterpret_cast<aclDataType*>(&written.number)); }, nullptr,
     teardown},
    {"aclGetIntArraySize", kObject, objects, [] { return aclGetIntArraySize(s.arrays[0], &written.number); },
     nullptr, teardown},
    {"aclGetBoolArraySize", kObject, objects, [] { return aclGetBoolArraySize(s.mask, &written.number); },
     nullptr, teardown},
    {"aclGetFloatArraySize", kObject, objects, [] { return aclGetFloatArraySize(s.floats, &written.number); },
     nullptr, teardown},
    {"aclGetTensorListSize", kObject, objects, [] { return aclGetTensorListSize(s.list, &written.number); },
     nullptr, teardown},
    {"aclSetAclOpExecutorRepeatable", kObject, planned_conv,
     [] { return aclSetAclOpExecutorRepeatable(s.executor); }, nullptr, teardown},
    {"aclDestroyAclOpExecutor", kObject, planned_conv,
     [] { return ended(aclDestroyAclOpExecutor(s.executor), s.executor); }, nullptr, teardown},
    {"aclSetInputTensorAddr", kObject, repeatable_conv,
     [] { return aclSetInputTensorAddr(s.executor, 0, s.tensors[0], data[0]); }, nullptr, teardown},
    {"aclSetOutputTensorAddr", kObject, repeatable_conv,
     [] { return aclSetOutputTensorAddr(s.executor, 0, s.tensors[3], data[3]); }, nullptr, teardown},
    {"aclSetTensorAddr", kObject, repeatable_conv,
     [] { return aclSetTensorAddr(s.executor, 0, s.tensors[0], data[0]); }, nullptr, teardown},

    {"aclnnConvolutionBackwardGetWorkspaceSize", kObject, small_conv, [] { return write_conv(1, false, 0); },
     destroy_plan, teardown},
    {"aclnnConvolutionBackwardGetWorkspaceSize", kObject, dense_conv, [] { return write_conv(1, false, 1); },
     destroy_plan, teardown},
    {"aclnnConvolutionBackwardGetWorkspaceSize", kObject, bf16_conv, [] { return write_conv(1, false, 0); },
     destroy_plan, teardown},
    {"aclnnConvolutionBackwardGetWorkspaceSize", kObject, depthwise_conv,
     [] { return write_conv(32, false, 0); }, destroy_plan, teardown},
    {"aclnnConvolutionBackwardGetWorkspaceSize", kObject, transposed_conv,
     [] { return write_conv(1, true, 0); }, destroy_plan, teardown},
    {"aclnnConvolutionBackwardGetWorkspaceSize", kObject, warned_conv, [] { return write_conv(1, false, 0); },
     destroy_plan, teardown},
    {"aclnnConvolutionBackwardGetWorkspaceSize", kObject, wrong_conv, [] { return write_conv(1, false, 0); },
     nullptr, teardown, 161002},
    {"aclnnConvolutionBackward", kObject, planned_conv, [] { return run(aclnnConvolutionBackward); }, finish,
     teardown},
    {"aclnnConvTbcBackwardGetWorkspaceSize", kObject, tbc,
     [] { return plan_tbc(&written.number, reinterpret_cast<aclOpExecutor**>(&written.pointer)); },
     destroy_plan, teardown},
    {"aclnnConvTbcBackward", kObject, planned_tbc, [] { return run(aclnnConvTbcBackward); }, finish,
     teardown},
    {"aclnnAvgPool2dBackwardGetWorkspaceSize", kObject, pool_2d,
     [] { return plan_pool_2d(&written.number, reinterpret_cast<aclOpExecutor**>(&written.pointer)); },
     destroy_plan, teardown},
    {"aclnnAvgPool2dBackward", kObject, planned_pool_2d, [] { return run(aclnnAvgPool2dBackward); }, finish,
     teardown},
    {"aclnnAvgPool3dBackwardGetWorkspaceSize", kObject, pool_3d,
     [] { return plan_pool_3d(&written.number, reinterpret_cast<aclOpExecutor**>(&written.pointer)); },
     destroy_plan, teardown},
    {"aclnnAvgPool3dBackward", kObject, planned_pool_3d, [] { return run(aclnnAvgPool3dBackward); }, finish,
     teardown},
    {"aclnnConvolutionGetWorkspaceSize", kObject, forward_conv,
     [] { return plan_forward_conv(&written.number, reinterpret_cast<aclOpExecutor**>(&written.pointer)); },
     destroy_plan, teardown},
    {"aclnnConvolution", kObject, planned_forward_conv, [] { return run(aclnnConvolution); }, finish,
     teardown},
    {"aclnnConvTbcGetWorkspaceSize", kObject, forward_tbc,
     [] { return plan_forward_tbc(&written.number, reinterpret_cast<aclOpExecutor**>(&written.pointer)); },
     destroy_plan, teardown},
    {"aclnnConvTbc", kObject, planned_forward_tbc, [] { return run(aclnnConvTbc); }, finish, teardown},
    {"aclnnAvgPool2dGetWorkspaceSize", kObject, pool_2d,
     [] {
       return plan_forward_pool_2d(&written.number, reinterpret_cast<aclOpExecutor**>(&written.pointer));
     },
     destroy_plan, teardown},
    {"aclnnAvgPool2d", kObject, planned_forward_pool_2d, [] { return run(aclnnAvgPool2d); }, finish,
     teardown},
    {"aclnnAvgPool3dGetWorkspaceSize", kObject, pool_3d,
     [] {
       return plan_forward_pool_3d(&written.number, reinterpret_cast<aclOpExecutor**>(&written.pointer));
     },
     destroy_plan, teardown},
    {"aclnnAvgPool3d", kObject, planned_forward_pool_3d, [] { return run(aclnnAvgPool3d); }, finish,
     teardown},
};

}  // namespace

std::span<const ExportedCall> exported_acl_calls() { return kCalls; }

}  // namespace retrograd::test
