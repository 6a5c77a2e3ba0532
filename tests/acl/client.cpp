// SPDX-License-Identifier: Apache-2.0
// Making handles of plain values, and running calls.
#include "client.h"

#include <array>
#include <bit>
#include <cstring>

namespace retrograd::acl_test {
namespace {

std::string pending_message() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

// Codes of the 8-bit types for the few values the tests use.
struct ByteCode {
  float value;
  uint8_t hifloat8, e4m3;
};
constexpr ByteCode kByteCodes[] = {{0.0f, 0x00, 0x00}, {1.0f, 0x08, 0x38}, {-1.0f, 0x88, 0xB8},
                                   {1.5f, 0x0C, 0x3C}, {2.0f, 0x10, 0x40}, {-2.0f, 0x90, 0xC0},
                                   {3.0f, 0x14, 0x44}, {4.0f, 0x20, 0x48}, {5.0f, 0x22, 0x4A},
                                   {6.0f, 0x24, 0x4C}, {8.0f, 0x28, 0x50}, {12.0f, 0x2C, 0x54}};

uint32_t encode_one(aclDataType dtype, float value) {
  switch (dtype) {
    case ACL_FLOAT:
      return std::bit_cast<uint32_t>(value);
    case ACL_FLOAT16:
      return aclFloatToFloat16(value);
    case ACL_BF16:
      return std::bit_cast<uint32_t>(value) >> 16;
    default:
      for (const ByteCode& code : kByteCodes)
        if (code.value == value) return dtype == ACL_HIFLOAT8 ? code.hifloat8 : code.e4m3;
      ADD_FAILURE() << value << " is not in the table of 8-bit codes";
      return 0;
  }
}

float decode_one(aclDataType dtype, uint32_t bits) {
  switch (dtype) {
    case ACL_FLOAT:
      return std::bit_cast<float>(bits);
    case ACL_FLOAT16:
      return aclFloat16ToFloat(static_cast<aclFloat16>(bits));
    case ACL_BF16:
      return std::bit_cast<float>(bits << 16);
    default:
      for (const ByteCode& code : kByteCodes)
        if ((dtype == ACL_HIFLOAT8 ? code.hifloat8 : code.e4m3) == bits) return code.value;
      ADD_FAILURE() << bits << " is not in the table of 8-bit codes";
      return 0;
  }
}

template <class Call>
PhaseOne finish(const Call& call, const std::function<aclnnStatus(uint64_t*, aclOpExecutor**)>& phase_one) {
  PhaseOne result;
  (void)aclGetRecentErrMsg();
  result.status = phase_one(call.null_workspace_size ? nullptr : &result.workspace_size,
                            call.null_executor ? nullptr : &result.executor);
  result.message = pending_message();
  return result;
}

}  // namespace

int64_t count_of(const Sizes& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Sizes dense_strides(const Sizes& shape) {
  Sizes strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::vector<uint8_t> encode(aclDataType dtype, const std::vector<float>& values) {
  const size_t width = aclDataTypeSize(dtype);
  std::vector<uint8_t> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = encode_one(dtype, values[i]);
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
  return bytes;
}

std::vector<float> decode(aclDataType dtype, const std::vector<uint8_t>& bytes) {
  const size_t width = aclDataTypeSize(dtype);
  std::vector<float> values(bytes.size() / width);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * width, width);
    values[i] = decode_one(dtype, bits);
  }
  return values;
}

aclFormat TensorArg::default_format() const {
  if (format) return *format;
  return shape.size() == 4 ? ACL_FORMAT_NCHW : shape.size() == 5 ? ACL_FORMAT_NCDHW : ACL_FORMAT_ND;
}

Handles::~Handles() {
  for (const auto* tensor : tensors_) EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  for (const auto* array : arrays_) EXPECT_EQ(aclDestroyIntArray(array), ACLNN_SUCCESS);
  for (const auto* mask : masks_) EXPECT_EQ(aclDestroyBoolArray(mask), ACLNN_SUCCESS);
}

aclTensor* Handles::tensor(const TensorArg& arg) {
  if (arg.null) return nullptr;
  if (arg.instead != nullptr) return const_cast<aclTensor*>(arg.instead);
  aclTensor* tensor = aclCreateTensor(arg.shape.data(), arg.shape.size(), arg.dtype,
                                      arg.strides ? arg.strides->data() : nullptr, arg.offset,
                                      arg.default_format(), arg.storage.data(), arg.storage.size(), arg.data);
  EXPECT_NE(tensor, nullptr);
  tensors_.push_back(tensor);
  return tensor;
}

const aclIntArray* Handles::array(const ArrayArg& arg) {
  if (arg.null) return nullptr;
  if (arg.instead != nullptr) return arg.instead;
  arrays_.push_back(aclCreateIntArray(arg.values.data(), arg.values.size()));
  EXPECT_NE(arrays_.back(), nullptr);
  return arrays_.back();
}

const aclBoolArray* Handles::mask(const MaskArg& arg) {
  if (arg.null) return nullptr;
  if (arg.instead != nullptr) return arg.instead;
  std::array<bool, 8> flags{};
  for (size_t i = 0; i < arg.values.size(); ++i) flags[i] = arg.values[i] != 0;
  masks_.push_back(aclCreateBoolArray(flags.data(), arg.values.size()));
  EXPECT_NE(masks_.back(), nullptr);
  return masks_.back();
}

void make_1d(ConvCall& c) {
  c.grad_output.shape = {2, 4, 6};
  c.input.shape = c.grad_input.shape = {2, 3, 8};
  c.weight.shape = c.grad_weight.shape = {4, 3, 3};
  c.stride = c.dilation = {1};
  c.padding = c.output_padding = {0};
}

void make_3d(ConvCall& c) {
  c.grad_output.shape = {1, 4, 2, 2, 2};
  c.input.shape = c.grad_input.shape = {1, 3, 3, 3, 3};
  c.weight.shape = c.grad_weight.shape = {4, 3, 2, 2, 2};
  c.stride = c.dilation = {1, 1, 1};
  c.padding = c.output_padding = {0, 0, 0};
}

void make_transposed(ConvCall& c) {
  c.transposed = true;
  c.input.shape = c.grad_input.shape = {2, 3, 4, 4};
  c.weight.shape = c.grad_weight.shape = {3, 5, 3, 3};
  c.grad_output.shape = {2, 5, 9, 9};
  c.grad_bias.shape = {5};
  c.bias_sizes = {5};
  c.stride = {2, 2};
}

PhaseOne ConvCall::phase_one() const {
  Handles h;
  aclTensor *go = h.tensor(grad_output), *x = h.tensor(input), *w = h.tensor(weight);
  aclTensor *gx = h.tensor(grad_input), *gw = h.tensor(grad_weight), *gb = h.tensor(grad_bias);
  const auto *sizes = h.array(bias_sizes), *s = h.array(stride), *p = h.array(padding),
             *d = h.array(dilation);
  const auto* extra = h.array(output_padding);
  const auto* wanted = h.mask(mask);
  return finish(*this, [&](uint64_t* size, aclOpExecutor** executor) {
    return aclnnConvolutionBackwardGetWorkspaceSize(go, x, w, sizes, s, p, d, transposed, extra, groups,
                                                    wanted, cube_math_type, gx, gw, gb, size, executor);
  });
}

PhaseOne TbcCall::phase_one() const {
  Handles h;
  aclTensor *go = h.tensor(self), *x = h.tensor(input), *w = h.tensor(weight), *b = h.tensor(bias);
  aclTensor *gx = h.tensor(grad_input), *gw = h.tensor(grad_weight), *gb = h.tensor(grad_bias);
  return finish(*this, [&](uint64_t* size, aclOpExecutor** executor) {
    return aclnnConvTbcBackwardGetWorkspaceSize(go, x, w, b, pad, cube_math_type, gx, gw, gb, size, executor);
  });
}

Pool2dCall::Pool2dCall() {
  grad_output = {{2, 3, 3, 2}};
  self = grad_input = {{2, 3, 6, 4}};
  kernel_size = stride = {2, 2};
  padding = {0, 0};
}

PhaseOne Pool2dCall::phase_one() const {
  Handles h;
  aclTensor *go = h.tensor(grad_output), *x = h.tensor(self), *gx = h.tensor(grad_input);
  const auto *k = h.array(kernel_size), *s = h.array(stride), *p = h.array(padding);
  return finish(*this, [&](uint64_t* size, aclOpExecutor** executor) {
    return aclnnAvgPool2dBackwardGetWorkspaceSize(go, x, k, s, p, ceil_mode, count_include_pad,
                                                  divisor_override, cube_math_type, gx, size, executor);
  });
}

Pool3dCall::Pool3dCall() {
  grad_output = {{1, 2, 1, 3, 2}};
  self = grad_input = {{1, 2, 2, 6, 4}};
  kernel_size = stride = {2, 2, 2};
  padding = {0, 0, 0};
}

PhaseOne Pool3dCall::phase_one() const {
  Handles h;
  aclTensor *go = h.tensor(grad_output), *x = h.tensor(self), *gx = h.tensor(grad_input);
  const auto *k = h.array(kernel_size), *s = h.array(stride), *p = h.array(padding);
  return finish(*this, [&](uint64_t* size, aclOpExecutor** executor) {
    return aclnnAvgPool3dBackwardGetWorkspaceSize(go, x, k, s, p, ceil_mode, count_include_pad,
                                                  divisor_override, gx, size, executor);
  });
}

void make_transposed(ForwardConvCall& c) {
  c.transposed = true;
  c.input.shape = {2, 3, 4, 4};
  c.weight.shape = {3, 5, 3, 3};
  c.output.shape = {2, 5, 9, 9};
  c.bias.shape = {5};
  c.stride = {2, 2};
}

PhaseOne ForwardConvCall::phase_one() const {
  Handles h;
  aclTensor *x = h.tensor(input), *w = h.tensor(weight), *b = h.tensor(bias), *y = h.tensor(output);
  const auto *s = h.array(stride), *p = h.array(padding), *d = h.array(dilation),
             *extra = h.array(output_padding);
  return finish(*this, [&](uint64_t* size, aclOpExecutor** executor) {
    return aclnnConvolutionGetWorkspaceSize(x, w, b, s, p, d, transposed, extra, groups, y, cube_math_type,
                                            size, executor);
  });
}

PhaseOne ForwardTbcCall::phase_one() const {
  Handles h;
  aclTensor *x = h.tensor(self), *w = h.tensor(weight), *b = h.tensor(bias), *y = h.tensor(output);
  return finish(*this, [&](uint64_t* size, aclOpExecutor** executor) {
    return aclnnConvTbcGetWorkspaceSize(x, w, b, pad, y, cube_math_type, size, executor);
  });
}

ForwardPool2dCall::ForwardPool2dCall() {
  self = {{2, 3, 6, 4}};
  out = {{2, 3, 3, 2}};
  kernel_size = stride = {2, 2};
  padding = {0, 0};
}

PhaseOne ForwardPool2dCall::phase_one() const {
  Handles h;
  aclTensor *x = h.tensor(self), *y = h.tensor(out);
  const auto *k = h.array(kernel_size), *s = h.array(stride), *p = h.array(padding);
  return finish(*this, [&](uint64_t* size, aclOpExecutor** executor) {
    return aclnnAvgPool2dGetWorkspaceSize(x, k, s, p, ceil_mode, count_include_pad, divisor_override,
                                          cube_math_type, y, size, executor);
  });
}

ForwardPool3dCall::ForwardPool3dCall() {
  self = {{1, 2, 2, 6, 4}};
  out = {{1, 2, 1, 3, 2}};
  kernel_size = stride = {2, 2, 2};
  padding = {0, 0, 0};
}

PhaseOne ForwardPool3dCall::phase_one() const {
  Handles h;
  aclTensor *x = h.tensor(self), *y = h.tensor(out);
  const auto *k = h.array(kernel_size), *s = h.array(stride), *p = h.array(padding);
  return finish(*this, [&](uint64_t* size, aclOpExecutor** executor) {
    return aclnnAvgPool3dGetWorkspaceSize(x, k, s, p, ceil_mode, count_include_pad, divisor_override, y, size,
                                          executor);
  });
}

std::vector<std::string> strings(const Texts& texts) {
  return {texts.begin(), std::find(texts.begin(), texts.end(), nullptr)};
}

::testing::AssertionResult refused(const PhaseOne& result, aclnnStatus status,
                                   const std::vector<std::string>& fragments) {
  if (result.status != status) {
    return ::testing::AssertionFailure()
           << "status " << result.status << ", not " << status << "; " << result.message;
  }
  if (!result.wrote_nothing())
    return ::testing::AssertionFailure() << "workspaceSize or executor was written";
  if (!result.message.starts_with(std::to_string(status) + " acl")) {
    return ::testing::AssertionFailure() << "the message does not start with the code: " << result.message;
  }
  for (const std::string& fragment : fragments) {
    if (result.message.find(fragment) == std::string::npos) {
      return ::testing::AssertionFailure() << "\"" << fragment << "\" is not in: " << result.message;
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult failed_with(int code, int expected, const std::vector<std::string>& fragments) {
  PhaseOne result;
  result.status = code;
  result.message = pending_message();
  return refused(result, expected, fragments);
}

void AclTest::SetUp() {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
  (void)aclGetRecentErrMsg();
}

void AclTest::TearDown() { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); }

}  // namespace retrograd::acl_test
