// SPDX-License-Identifier: Apache-2.0
// Decodes acl objects and checks the promises that hold for every operator's two phases.
#include "acl_arguments.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace retrograd::fuzz {

AclArguments::~AclArguments() {
  for (const aclTensor* t : tensor_handles_) (void)aclDestroyTensor(t);
  for (const aclIntArray* a : int_arrays_) (void)aclDestroyIntArray(a);
  for (const aclBoolArray* a : bool_arrays_) (void)aclDestroyBoolArray(a);
}

void* AclArguments::odd_handle(uint8_t kind, void* live) {
  static int64_t not_an_object[8] = {};
  if (kind == kForeign) {
    // An object of another kind than any argument has.
    static const aclFloatArray* const foreign = aclCreateFloatArray(nullptr, 0);
    return const_cast<aclFloatArray*>(foreign);
  }
  if (kind == kAddress) return not_an_object;
  return kind == kNull ? nullptr : live;
}

AclTensorArgument& AclArguments::tensor(const std::vector<int64_t>& fitting) {
  AclTensorArgument& t = *tensors_.emplace_back(std::make_unique<AclTensorArgument>());
  const uint8_t mode = reader_.byte();
  t.shape = (mode & kOwnShape) != 0 ? reader_.numbers(reader_.byte() % 10) : fitting;
  const auto dtype = static_cast<aclDataType>(
      reader_.choice({ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_HIFLOAT8, ACL_FLOAT8_E4M3FN}));
  const auto format = static_cast<aclFormat>(
      reader_.choice({ACL_FORMAT_ND, ACL_FORMAT_NCL, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW}));
  std::vector<int64_t> strides;
  if ((mode & kStrided) != 0) strides = reader_.numbers(t.shape.size());
  const int64_t offset = (mode & kOffset) != 0 ? reader_.number() : 0;
  t.memory = ViewMemory(t.shape, strides, aclDataTypeSize(dtype));
  // As much storage as the view needs, unless the input wants it otherwise.
  std::vector<int64_t> storage;
  if ((mode & kStorage) != 0) {
    storage = reader_.numbers(reader_.byte() % 10);
  } else if (t.memory.small() && offset >= 0 && offset < kMaxElements) {
    storage = {t.memory.elements() == 0 ? offset : offset + t.memory.highest() + 1};
  }
  void* data = (mode & kNullData) != 0 ? nullptr : t.memory.data(offset);
  aclTensor* live =
      aclCreateTensor(t.shape.data(), t.shape.size(), dtype, strides.empty() ? nullptr : strides.data(),
                      offset, format, storage.data(), storage.size(), data);
  tensor_handles_.push_back(live);
  t.live = mode >= kLive && live != nullptr;
  if (mode == kDead) (void)aclDestroyTensor(live);
  t.handle = static_cast<aclTensor*>(odd_handle(mode, live));
  return t;
}

AclIntArrayArgument AclArguments::int_array() {
  AclIntArrayArgument a;
  const uint8_t mode = reader_.byte();
  a.values = reader_.numbers(reader_.byte() % 10);
  const aclIntArray* live = aclCreateIntArray(a.values.data(), a.values.size());
  int_arrays_.push_back(live);
  if (mode == kDead) (void)aclDestroyIntArray(live);
  a.handle = static_cast<aclIntArray*>(odd_handle(mode, const_cast<aclIntArray*>(live)));
  return a;
}

const aclBoolArray* AclArguments::bool_array() {
  const uint8_t mode = reader_.byte(), bits = reader_.byte();
  const bool values[] = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
  const aclBoolArray* live = aclCreateBoolArray(values, (bits & 0x80) != 0 ? (bits >> 4) % 5 : 3);
  bool_arrays_.push_back(live);
  if (mode == kDead) (void)aclDestroyBoolArray(live);
  return static_cast<const aclBoolArray*>(odd_handle(mode, const_cast<aclBoolArray*>(live)));
}

bool AclArguments::small() const {
  for (const auto& t : tensors_)
    if (t->live && !t->memory.small()) return false;
  return true;
}

aclrtStream start_acl() {
  static const aclrtStream stream = [] {
    setenv("RETROGRAD_VERBOSE", "none", 0);
    setenv("RETROGRAD_NUM_THREADS", "1", 0);
    aclrtStream made = nullptr;
    require(aclInit(nullptr) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS);
    require(aclrtCreateStream(&made) == ACL_SUCCESS);
    return made;
  }();
  return stream;
}

bool PhaseOne::succeeded(aclnnStatus status) const {
  const char* message = aclGetRecentErrMsg();
  if (status == 0) {
    require(workspace_bytes != kUntouched && executor != PhaseOne{}.executor && executor != nullptr);
    return true;
  }
  require(status == 161001 || status == 161002 || status == 561103);
  require(workspace_bytes == kUntouched && executor == PhaseOne{}.executor);
  require(message != nullptr && std::string(message).starts_with(std::to_string(status)));
  return false;
}

void run_phase_two(ByteReader& reader, const PhaseOne& plan, PhaseTwo run, aclrtStream stream) {
  const uint8_t mode = reader.byte();
  const bool repeatable = (mode & 1) != 0, no_workspace = (mode & 2) != 0, short_workspace = (mode & 4) != 0;
  const uint64_t bytes =
      short_workspace && plan.workspace_bytes > 0 ? plan.workspace_bytes - 1 : plan.workspace_bytes;
  std::vector<unsigned char> workspace(no_workspace ? 0 : bytes, 0xA5);
  if (repeatable) require(aclSetAclOpExecutorRepeatable(plan.executor) == 0);
  for (int i = 0; i <= (repeatable ? 1 : 0); ++i) {
    const aclnnStatus status =
        run(workspace.empty() ? nullptr : workspace.data(), bytes, plan.executor, stream);
    require(status == 0 || status == 161001 || status == 161002);
    if (plan.workspace_bytes > 0 && (no_workspace || short_workspace)) require(status != 0);
  }
  require(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
  (void)aclDestroyAclOpExecutor(plan.executor);
  (void)aclGetRecentErrMsg();
}

}  // namespace retrograd::fuzz
