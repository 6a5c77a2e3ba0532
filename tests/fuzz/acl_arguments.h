// SPDX-License-Identifier: Apache-2.0
// Acl objects decoded from a fuzzer's bytes: live ones of any shape, and null, dead and foreign ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "byte_reader.h"
#include "view_memory.h"

namespace retrograd::fuzz {

struct AclTensorArgument {
  aclTensor* handle = nullptr;
  std::vector<int64_t> shape;
  ViewMemory memory;
  bool live = false;
};

struct AclIntArrayArgument {
  aclIntArray* handle = nullptr;
  std::vector<int64_t> values;
};

// Everything decoded from one input; destroyed with it, dead objects a second time.
class AclArguments {
 public:
  explicit AclArguments(ByteReader& reader) : reader_(reader) {}
  AclArguments(const AclArguments&) = delete;
  AclArguments& operator=(const AclArguments&) = delete;
  ~AclArguments();

  // `fitting` is the shape taken when the input does not spell one out.
  AclTensorArgument& tensor(const std::vector<int64_t>& fitting);
  AclIntArrayArgument int_array();
  const aclBoolArray* bool_array();
  // No live tensor is too large to run with.
  bool small() const;

 private:
  // The kinds of handle an argument can be besides a live one.
  void* odd_handle(uint8_t kind, void* live);

  ByteReader& reader_;
  std::vector<std::unique_ptr<AclTensorArgument>> tensors_;
  std::vector<const aclTensor*> tensor_handles_;
  std::vector<const aclIntArray*> int_arrays_;
  std::vector<const aclBoolArray*> bool_arrays_;
};

// aclInit, a device, a stream, a quiet log: once in a process.
aclrtStream start_acl();

// Phase one's outcome: what it wrote, and the promises it must have kept.
struct PhaseOne {
  static constexpr uint64_t kUntouched = 0xDEADBEEF;
  uint64_t workspace_bytes = kUntouched;
  aclOpExecutor* executor = reinterpret_cast<aclOpExecutor*>(uintptr_t{kUntouched});
  // Aborts when a failure wrote something, lacks a message, or has a code of no documented kind.
  bool succeeded(aclnnStatus status) const;
};

using PhaseTwo = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, const aclrtStream);
// Runs the executor once, or twice when the input says repeatable, with a workspace that may be short or
// missing; destroys it, also when it is dead already.
void run_phase_two(ByteReader& reader, const PhaseOne& plan, PhaseTwo run, aclrtStream stream);
// The same where `runs`; otherwise the executor is destroyed.
inline void run_or_drop(bool runs, ByteReader& reader, const PhaseOne& plan, PhaseTwo run,
                        aclrtStream stream) {
  if (runs) return run_phase_two(reader, plan, run, stream);
  require(aclDestroyAclOpExecutor(plan.executor) == 0);
}

}  // namespace retrograd::fuzz
