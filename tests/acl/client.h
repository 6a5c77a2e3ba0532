// SPDX-License-Identifier: Apache-2.0
// What the tests of the acl interface share: arguments as plain values, made into handles for one call and
// destroyed after it, and what phase one answered.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"

namespace retrograd::acl_test {

using Sizes = std::vector<int64_t>;

int64_t count_of(const Sizes& shape);
Sizes dense_strides(const Sizes& shape);

// Elements of any of our types, as floats. Encoding takes values the type holds exactly.
std::vector<uint8_t> encode(aclDataType dtype, const std::vector<float>& values);
std::vector<float> decode(aclDataType dtype, const std::vector<uint8_t>& bytes);

// A tensor argument. The format follows from the rank unless it is said.
struct TensorArg {
  TensorArg() = default;
  TensorArg(Sizes sizes, aclDataType type = ACL_FLOAT) : shape(std::move(sizes)), dtype(type) {}

  Sizes shape;
  aclDataType dtype = ACL_FLOAT;
  std::optional<aclFormat> format;
  std::optional<Sizes> strides;  // nullopt: a null pointer, dense
  int64_t offset = 0;
  Sizes storage;  // empty: not said
  void* data = nullptr;
  const aclTensor* instead = nullptr;  // passed in place of the tensor
  bool null = false;

  aclFormat default_format() const;
};

struct ArrayArg {
  ArrayArg() = default;
  ArrayArg(std::initializer_list<int64_t> list) : values(list) {}
  ArrayArg(Sizes list) : values(std::move(list)) {}

  Sizes values;
  const aclIntArray* instead = nullptr;
  bool null = false;
};

struct MaskArg {
  std::vector<uint8_t> values = {1, 1, 1};
  const aclBoolArray* instead = nullptr;
  bool null = false;
};

// Handles of one call.
class Handles {
 public:
  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles();
  aclTensor* tensor(const TensorArg& arg);
  const aclIntArray* array(const ArrayArg& arg);
  const aclBoolArray* mask(const MaskArg& arg);

 private:
  std::vector<const aclTensor*> tensors_;
  std::vector<const aclIntArray*> arrays_;
  std::vector<const aclBoolArray*> masks_;
};

// What phase one left behind. Both results are poisoned before the call.
struct PhaseOne {
  static constexpr uint64_t kPoison = 0x5AFE5AFE5AFE5AFE;
  static aclOpExecutor* poisoned() { return reinterpret_cast<aclOpExecutor*>(uintptr_t{kPoison}); }

  aclnnStatus status = -1;
  std::string message;  // empty when none was pending
  uint64_t workspace_size = kPoison;
  aclOpExecutor* executor = poisoned();
  bool wrote_nothing() const { return workspace_size == kPoison && executor == poisoned(); }
};

using PhaseTwo = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, const aclrtStream);

// aclnnConvolutionBackward, legal as it stands.
struct ConvCall {
  static constexpr PhaseTwo kRun = aclnnConvolutionBackward;
  TensorArg grad_output{{2, 4, 6, 6}}, input{{2, 3, 8, 8}}, weight{{4, 3, 3, 3}};
  ArrayArg bias_sizes{4}, stride{1, 1}, padding{0, 0}, dilation{1, 1}, output_padding{0, 0};
  bool transposed = false;
  int groups = 1;
  MaskArg mask;
  int8_t cube_math_type = 0;
  TensorArg grad_input{{2, 3, 8, 8}}, grad_weight{{4, 3, 3, 3}}, grad_bias{{4}};
  bool null_workspace_size = false, null_executor = false;

  std::vector<TensorArg*> inputs() { return {&grad_output, &input, &weight}; }
  std::vector<TensorArg*> outputs() { return {&grad_input, &grad_weight, &grad_bias}; }
  PhaseOne phase_one() const;
};

// The same over one axis, over three, and transposed: input 2x3x4x4, weight 3x5x3x3, stride 2, gradOutput
// 2x5x9x9.
void make_1d(ConvCall& c);
void make_3d(ConvCall& c);
void make_transposed(ConvCall& c);

// aclnnConvTbcBackward, legal as it stands.
struct TbcCall {
  static constexpr PhaseTwo kRun = aclnnConvTbcBackward;
  TensorArg self{{5, 2, 4}}, input{{6, 2, 3}}, weight{{4, 3, 4}}, bias{{4}};
  int64_t pad = 1;
  int8_t cube_math_type = 0;
  TensorArg grad_input{{6, 2, 3}}, grad_weight{{4, 3, 4}}, grad_bias{{4}};
  bool null_workspace_size = false, null_executor = false;

  std::vector<TensorArg*> inputs() { return {&self, &input, &weight, &bias}; }
  std::vector<TensorArg*> outputs() { return {&grad_input, &grad_weight, &grad_bias}; }
  PhaseOne phase_one() const;
};

// aclnnAvgPool2dBackward and aclnnAvgPool3dBackward, legal as they stand.
struct PoolCall {
  TensorArg grad_output, self;
  ArrayArg kernel_size, stride, padding;
  bool ceil_mode = false, count_include_pad = true;
  int64_t divisor_override = 0;
  int8_t cube_math_type = 0;  // 2-D only
  TensorArg grad_input;
  bool null_workspace_size = false, null_executor = false;

  std::vector<TensorArg*> inputs() { return {&grad_output, &self}; }
  std::vector<TensorArg*> outputs() { return {&grad_input}; }
};
struct Pool2dCall : PoolCall {
  static constexpr PhaseTwo kRun = aclnnAvgPool2dBackward;
  Pool2dCall();
  PhaseOne phase_one() const;
};
struct Pool3dCall : PoolCall {
  static constexpr PhaseTwo kRun = aclnnAvgPool3dBackward;
  Pool3dCall();
  PhaseOne phase_one() const;
};

// aclnnConvolution, aclnnConvTbc and the forward pools, legal as they stand.
struct ForwardConvCall {
  static constexpr PhaseTwo kRun = aclnnConvolution;
  TensorArg input{{2, 3, 8, 8}}, weight{{4, 3, 3, 3}}, bias{{4}};
  ArrayArg stride{1, 1}, padding{0, 0}, dilation{1, 1}, output_padding{0, 0};
  bool transposed = false;
  int64_t groups = 1;
  TensorArg output{{2, 4, 6, 6}};
  int8_t cube_math_type = 0;
  bool null_workspace_size = false, null_executor = false;

  std::vector<TensorArg*> inputs() { return {&input, &weight, &bias}; }
  std::vector<TensorArg*> outputs() { return {&output}; }
  PhaseOne phase_one() const;
};
// input 2x3x4x4, weight 3x5x3x3, stride 2, output 2x5x9x9.
void make_transposed(ForwardConvCall& c);

struct ForwardTbcCall {
  static constexpr PhaseTwo kRun = aclnnConvTbc;
  TensorArg self{{6, 2, 3}}, weight{{4, 3, 4}}, bias{{4}};
  int64_t pad = 1;
  TensorArg output{{5, 2, 4}};
  int8_t cube_math_type = 0;
  bool null_workspace_size = false, null_executor = false;

  std::vector<TensorArg*> inputs() { return {&self, &weight, &bias}; }
  std::vector<TensorArg*> outputs() { return {&output}; }
  PhaseOne phase_one() const;
};

struct ForwardPoolCall {
  TensorArg self;
  ArrayArg kernel_size, stride, padding;
  bool ceil_mode = false, count_include_pad = true;
  int64_t divisor_override = 0;
  int8_t cube_math_type = 0;  // 2-D only
  TensorArg out;
  bool null_workspace_size = false, null_executor = false;

  std::vector<TensorArg*> inputs() { return {&self}; }
  std::vector<TensorArg*> outputs() { return {&out}; }
};
struct ForwardPool2dCall : ForwardPoolCall {
  static constexpr PhaseTwo kRun = aclnnAvgPool2d;
  ForwardPool2dCall();
  PhaseOne phase_one() const;
};
struct ForwardPool3dCall : ForwardPoolCall {
  static constexpr PhaseTwo kRun = aclnnAvgPool3d;
  ForwardPool3dCall();
  PhaseOne phase_one() const;
};

// A few texts, as a constant; as strings.
using Texts = std::array<const char*, 5>;
std::vector<std::string> strings(const Texts& texts);

// The status is `status`, nothing was written, and the message starts with it and holds every fragment.
::testing::AssertionResult refused(const PhaseOne& result, aclnnStatus status,
                                   const std::vector<std::string>& fragments);

// Asserts the same of a call that returned `code`; takes the pending message.
::testing::AssertionResult failed_with(int code, int expected,
                                       const std::vector<std::string>& fragments = {});

// An initialised acl with device 0 and one stream; everything gone at the end.
class AclTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  aclrtStream stream_ = nullptr;
};

}  // namespace retrograd::acl_test
