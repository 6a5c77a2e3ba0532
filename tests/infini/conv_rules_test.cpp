// SPDX-License-Identifier: Apache-2.0
// Every rule of infiniopCreateConvBackwardDescriptor, provoked: the status, and the argument, value and rule
// in the text.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "infini/client.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test::conv_rules_test {
namespace {

constexpr const char* kCreate = "infiniopCreateConvBackwardDescriptor";
constexpr size_t kHuge = size_t{1} << 40;

struct Rule {
  const char* name;
  void (*break_it)(ConvCall&);
  infiniStatus_t status;
  std::vector<std::string> fragments;
};
void PrintTo(const Rule& rule, std::ostream* stream) { *stream << rule.name; }

const Rule kRules[] = {
    // Attributes.
    {"NIsZero", [](ConvCall& c) { c.n = 0; }, INFINI_STATUS_BAD_PARAM, {"n is 0", "at least 1"}},
    {"NIsNotTheQuotient",
     [](ConvCall& c) { c.n = 2; },
     INFINI_STATUS_BAD_PARAM,
     {"n is 2", "weight_desc.shape[1]", "input_desc.shape[1]"}},
    {"NForgetsTheGroups",
     [](ConvCall& c) { c.weight.shape[1] = 2; },
     INFINI_STATUS_BAD_PARAM,
     {"n is 1", "weight_desc.shape[1] (2)", "n = 2 would fit"}},
    {"NIsMinusOne",
     [](ConvCall& c) { c.n = SIZE_MAX; },
     INFINI_STATUS_BAD_PARAM,
     {"n is 18446744073709551615"}},
    {"StrideZeroFirst",
     [](ConvCall& c) {
       c.strides = {0, 1};
     },
     INFINI_STATUS_BAD_PARAM,
     {"strides[0] is 0", "at least 1"}},
    {"StrideZeroSecond",
     [](ConvCall& c) {
       c.strides = {1, 0};
     },
     INFINI_STATUS_BAD_PARAM,
     {"strides[1] is 0", "at least 1"}},
    {"StrideZeroBoth",
     [](ConvCall& c) {
       c.strides = {0, 0};
     },
     INFINI_STATUS_BAD_PARAM,
     {"strides[0] is 0"}},
    {"StrideNegative",
     [](ConvCall& c) {
       c.strides = {1, -2};
     },
     INFINI_STATUS_BAD_PARAM,
     {"strides[1] is -2"}},
    {"DilationZero",
     [](ConvCall& c) {
       c.dilations = {1, 0};
     },
     INFINI_STATUS_BAD_PARAM,
     {"dilations[1] is 0", "at least 1"}},
    {"DilationNegative",
     [](ConvCall& c) {
       c.dilations = {-1, 1};
     },
     INFINI_STATUS_BAD_PARAM,
     {"dilations[0] is -1"}},
    {"PadNegative",
     [](ConvCall& c) {
       c.pads = {0, -1};
     },
     INFINI_STATUS_BAD_PARAM,
     {"pads[1] is -1", "at least 0"}},
    // Element types.
    {"DtypeI32",
     [](ConvCall& c) { c.input.dtype = INFINI_DTYPE_I32; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"input_desc.dtype is 5", "F16 (12), F32 (13) or BF16 (19)"}},
    {"DtypeF64",
     [](ConvCall& c) { c.weight.dtype = INFINI_DTYPE_F64; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"weight_desc.dtype is 14"}},
    {"DtypeF8",
     [](ConvCall& c) { c.grad_output.dtype = INFINI_DTYPE_F8; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"grad_output_desc.dtype is 11"}},
    {"DtypeUnknown",
     [](ConvCall& c) { c.input.dtype = static_cast<infiniDtype_t>(99); },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"input_desc.dtype is 99"}},
    {"DtypeNegative",
     [](ConvCall& c) { c.input.dtype = static_cast<infiniDtype_t>(-1); },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"input_desc.dtype is -1"}},
    {"DtypesDiffer",
     [](ConvCall& c) { c.weight.dtype = INFINI_DTYPE_F16; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"weight_desc f16", "one type for all tensors"}},
    {"DtypeOfBiasDiffers",
     [](ConvCall& c) { c.bias->dtype = INFINI_DTYPE_BF16; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"bias_desc.dtype is bf16", "expected f32"}},
    {"DtypeOfBiasUnserved",
     [](ConvCall& c) { c.bias->dtype = INFINI_DTYPE_BOOL; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"bias_desc.dtype is 2"}},
    // Shapes.
    {"RanksDifferInWeight",
     [](ConvCall& c) {
       c.weight.shape = {6, 4, 3};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"weight_desc", "rank 3", "expected"}},
    {"RanksDifferInGradOutput",
     [](ConvCall& c) {
       c.grad_output.shape = {2, 6, 8, 8, 1};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc", "rank 5"}},
    {"BatchDiffers",
     [](ConvCall& c) { c.grad_output.shape[0] = 3; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[0] is 3", "expected 2"}},
    {"OutputChannelsDiffer",
     [](ConvCall& c) { c.grad_output.shape[1] = 5; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[1] is 5", "expected 6"}},
    {"OutputChannelsNotAMultipleOfN",
     [](ConvCall& c) {
       c.weight.shape = {5, 2, 3, 3};
       c.grad_output.shape[1] = 5;
       c.bias->shape = {5};
       c.n = 2;
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"weight_desc.shape[0] is 5", "multiple of n = 2"}},
    {"OutputSizeDiffers",
     [](ConvCall& c) { c.grad_output.shape[3] = 9; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[3] is 9", "expected 8 = floor((10 + 0 + 0 - 1*(3-1) - 1)/1) + 1", "strides 1"}},
    {"OutputSizeIgnoresStride",
     [](ConvCall& c) {
       c.strides = {2, 1};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[2] is 8", "expected 4"}},
    {"KernelDoesNotFit",
     [](ConvCall& c) { c.weight.shape[2] = 11; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"kernel does not fit"}},
    {"DilatedKernelDoesNotFit",
     [](ConvCall& c) {
       c.dilations = {1, 5};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"kernel does not fit", "dilations 5"}},
    {"InputSizeZero",
     [](ConvCall& c) { c.input.shape[2] = 0; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"input_desc.shape[2] is 0", "at least 1"}},
    {"KernelSizeZero",
     [](ConvCall& c) { c.weight.shape[3] = 0; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"weight_desc.shape[3] is 0"}},
    {"OutputSizeZero",
     [](ConvCall& c) { c.grad_output.shape[2] = 0; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[2] is 0", "expected 8"}},
    {"NoOutputChannels",
     [](ConvCall& c) { c.weight.shape[0] = c.grad_output.shape[1] = c.bias->shape[0] = 0; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"weight_desc.shape[0] is 0"}},
    {"BiasOfRankTwo",
     [](ConvCall& c) {
       c.bias->shape = {1, 6};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"bias_desc"}},
    {"BiasOfRankZero",
     [](ConvCall& c) { c.bias->shape = {}; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"bias_desc"}},
    {"BiasOfAnotherLength",
     [](ConvCall& c) { c.bias->shape = {7}; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"bias_desc", "7", "6"}},
    {"SizesMultiplyBeyond64Bits",
     [](ConvCall& c) {
       c.input.shape = {2, 4, kHuge, kHuge};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"input_desc", "64 bits"}},
    {"BytesBeyond64Bits",
     [](ConvCall& c) {
       c.input.shape = {1, 4, size_t{1} << 30, size_t{1} << 29};
       c.grad_output.shape = {1, 6, (size_t{1} << 30) - 2, (size_t{1} << 29) - 2};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"64 bits"}},
    // Strides.
    {"StridesReachBeyond64Bits",
     [](ConvCall& c) {
       c.input.strides = {PTRDIFF_MAX, 100, 10, 1};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"input_desc", "64 bits"}},
    {"StridesOfTheSmallestNumber",
     [](ConvCall& c) {
       c.grad_output.strides = {PTRDIFF_MIN, 64, 8, 1};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc", "64 bits"}},
    {"GradInputWouldOverlap",
     [](ConvCall& c) {
       c.input.strides = {400, 100, 10, 0};
     },
     INFINI_STATUS_BAD_TENSOR_STRIDES,
     {"input_desc.strides is 400x100x10x0", "share an address"}},
    {"GradInputWouldOverlapPartly",
     [](ConvCall& c) {
       c.input.strides = {400, 100, 9, 1};
     },
     INFINI_STATUS_BAD_TENSOR_STRIDES,
     {"input_desc.strides is 400x100x9x1"}},
    {"GradWeightWouldOverlap",
     [](ConvCall& c) {
       c.weight.strides = {0, 9, 3, 1};
     },
     INFINI_STATUS_BAD_TENSOR_STRIDES,
     {"weight_desc.strides is 0x9x3x1", "share an address"}},
};

class ConvRules : public testing::TestWithParam<Rule> {};

TEST_P(ConvRules, AreEnforcedAndExplained) {
  ConvCall call;
  GetParam().break_it(call);
  const auto untouched = reinterpret_cast<infiniopConvBackwardDescriptor_t>(&call);
  infiniopConvBackwardDescriptor_t descriptor = untouched;
  const infiniStatus_t status = call.create(&descriptor);
  expect_refused(status, GetParam().status, kCreate, GetParam().fragments);
  EXPECT_EQ(descriptor, untouched) << "a failing call writes nothing";
}

INSTANTIATE_TEST_SUITE_P(Infiniop, ConvRules, testing::ValuesIn(kRules),
                         [](const auto& rule) { return std::string(rule.param.name); });

TEST(ConvRulesTable, ARefusalEndsWithALineThatReproducesIt) {
  ConvCall call;
  call.strides = {1, 3};
  infiniopConvBackwardDescriptor_t descriptor = nullptr;
  expect_refused(call.create(&descriptor), INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate,
                 {"\nreproduce: retrograd explain \"conv ", "input=2x4x10x10", "weight=6x4x3x3",
                  "grad_output=2x6x8x8", "stride=1x3"});
}

TEST(ConvRulesTable, StartsFromALegalCall) { EXPECT_NE(make(ConvCall{}).get(), nullptr); }

TEST(ConvRanks, Only3To5AreServed) {
  for (size_t rank = 0; rank <= 8; ++rank) {
    SCOPED_TRACE(testing::Message() << "rank " << rank);
    const std::vector<size_t> ones(rank, 1);
    // No array is read unless the rank is legal: these addresses could not be.
    ConvCall call{{ones}, {ones}, {ones}, View{{1}}, {}, {}, {}, 1};
    infiniopConvBackwardDescriptor_t descriptor = nullptr;
    const infiniStatus_t status = call.create(&descriptor);
    if (rank >= 3 && rank <= 5) {
      EXPECT_EQ(status, INFINI_STATUS_SUCCESS) << retrogradGetLastError();
      EXPECT_EQ(infiniopDestroyConvBackwardDescriptor(descriptor), INFINI_STATUS_SUCCESS);
    } else {
      const std::string has = "input_desc.shape has rank " + std::to_string(rank);
      expect_refused(status, INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate, {has.c_str(), "3, 4 or 5"});
    }
  }
}

TEST(ConvRanks, ArraysAreNotReadWhenTheRankIsIllegal) {
  const Handle handle;
  const TensorDescriptor flat({{2, 2}});
  infiniopConvBackwardDescriptor_t descriptor = nullptr;
  void* unreadable = reinterpret_cast<void*>(uintptr_t{8});
  expect_refused(
      infiniopCreateConvBackwardDescriptor(handle.get(), &descriptor, flat.get(), flat.get(), flat.get(),
                                           nullptr, unreadable, unreadable, unreadable, 1),
      INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate, {"rank 2"});
}

TEST(ConvEmptyTensors, AnEmptyBatchIsLegalAndGivesZeroGradients) {
  ConvCall call;
  call.grad_output.shape[0] = call.input.shape[0] = 0;
  const Operator conv = make(call);
  Tensor grad_weight(call.weight), grad_bias(*call.bias);
  const Tensor weight(call.weight);
  ASSERT_EQ(infiniopConvBackward(conv.get(), room().data(), room().size(), nullptr, grad_weight.data(),
                                 grad_bias.data(), nullptr, nullptr, weight.data(), nullptr),
            INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
  EXPECT_EQ(grad_weight.values(), std::vector<double>(grad_weight.count(), 0));
  EXPECT_EQ(grad_bias.values(), std::vector<double>(6, 0));
}

}  // namespace
}  // namespace retrograd::infini_test::conv_rules_test
