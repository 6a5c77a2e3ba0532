// SPDX-License-Identifier: Apache-2.0
// A convolution's gradients as a program asks the aclnn interface for them, for timing each part of the call.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "base/status.h"
#include "engines/engine.h"
#include "problem/request.h"

namespace retrograd::tools {

class AclCall {
 public:
  // `bindings` are the operands' addresses, which outlive the call.
  static Result<AclCall> make(const problem::ConvRequest& request, const engines::Bindings& bindings);

  // The three things a program does for one call; each fails with the library's own message.
  Status phase_one();
  Status phase_two(void* workspace);
  Status synchronize();
  // After phase_one: its executor stays for any number of second phases, until release_executor.
  Status keep_executor();
  Status release_executor();
  uint64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  template <class T>
  using Owned = std::unique_ptr<T, int (*)(const T*)>;
  using Tensor = Owned<aclTensor>;
  using Ints = Owned<aclIntArray>;
  static Tensor tensor(const std::optional<problem::TensorView>& view, const void* address);
  static Ints ints(const std::vector<int64_t>& values);

  Tensor grad_output_ = tensor({}, nullptr), input_ = tensor({}, nullptr), weight_ = tensor({}, nullptr);
  Tensor grad_input_ = tensor({}, nullptr), grad_weight_ = tensor({}, nullptr),
         grad_bias_ = tensor({}, nullptr);
  Ints bias_sizes_ = ints({}), stride_ = ints({}), padding_ = ints({}), dilation_ = ints({}),
       output_padding_ = ints({});
  Owned<aclBoolArray> mask_{nullptr, aclDestroyBoolArray};
  bool transposed_ = false;
  int groups_ = 1;
  int8_t math_mode_ = 0;
  std::unique_ptr<void, int (*)(void*)> stream_{nullptr, aclrtDestroyStream};
  uint64_t workspace_bytes_ = 0;
  aclOpExecutor* executor_ = nullptr;
};

}  // namespace retrograd::tools
