// SPDX-License-Identifier: Apache-2.0
// Every rule of infiniopCreateAvgPoolBackwardDescriptor, provoked: the status, and the argument, value and
// rule.
#include <gtest/gtest.h>

#include <cstdint>

#include "infini/client.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test::pool_rules_test {
namespace {

constexpr const char* kCreate = "infiniopCreateAvgPoolBackwardDescriptor";

struct Rule {
  const char* name;
  void (*break_it)(PoolCall&);
  infiniStatus_t status;
  std::vector<std::string> fragments;
};
void PrintTo(const Rule& rule, std::ostream* stream) { *stream << rule.name; }

const Rule kRules[] = {
    // Attributes. The second zero of a pair of 64-bit numbers cannot hide anything, the first one neither.
    {"KernelZeroFirst",
     [](PoolCall& c) {
       c.kernel_size = {0, 2};
     },
     INFINI_STATUS_BAD_PARAM,
     {"kernel_size[0] is 0", "at least 1"}},
    {"KernelZeroSecond",
     [](PoolCall& c) {
       c.kernel_size = {2, 0};
     },
     INFINI_STATUS_BAD_PARAM,
     {"kernel_size[1] is 0", "at least 1"}},
    {"StrideZero",
     [](PoolCall& c) {
       c.strides = {2, 0};
     },
     INFINI_STATUS_BAD_PARAM,
     {"strides[1] is 0", "at least 1"}},
    {"PadsBeyondHalfTheKernel",
     [](PoolCall& c) {
       c.pads = {0, 2};
     },
     INFINI_STATUS_BAD_PARAM,
     {"pads[1] is 2", "at most 1", "half the kernel of 2"}},
    {"PadsHuge",
     [](PoolCall& c) {
       c.pads = {SIZE_MAX, 0};
     },
     INFINI_STATUS_BAD_PARAM,
     {"pads[0] is 18446744073709551615"}},
    {"KernelNull", [](PoolCall& c) { c.kernel_size = {}; }, INFINI_STATUS_BAD_PARAM, {"kernel_size is null"}},
    // Element types.
    {"DtypeI8",
     [](PoolCall& c) { c.grad_output.dtype = INFINI_DTYPE_I8; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"grad_output_desc.dtype is 3", "F16 (12), F32 (13) or BF16 (19)"}},
    {"DtypeUnknown",
     [](PoolCall& c) { c.grad_input.dtype = static_cast<infiniDtype_t>(20); },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"grad_input_desc.dtype is 20"}},
    {"DtypesDiffer",
     [](PoolCall& c) { c.grad_input.dtype = INFINI_DTYPE_F16; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"grad_input_desc.dtype is f16", "expected f32"}},
    {"DtypeOfInputDiffers",
     [](PoolCall& c) { c.input.dtype = INFINI_DTYPE_BF16; },
     INFINI_STATUS_BAD_TENSOR_DTYPE,
     {"input_desc.dtype is bf16"}},
    // Shapes.
    {"GradInputShapeDiffers",
     [](PoolCall& c) { c.grad_input.shape[3] = 7; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_input_desc.shape[3] is 7", "expected 8"}},
    {"GradInputRankDiffers",
     [](PoolCall& c) {
       c.grad_input.shape = {2, 3, 8};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_input_desc"}},
    {"GradOutputRankDiffers",
     [](PoolCall& c) {
       c.grad_output.shape = {2, 3, 4};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc", "rank 3"}},
    {"BatchDiffers",
     [](PoolCall& c) { c.grad_output.shape[0] = 1; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[0] is 1", "expected 2"}},
    {"ChannelsDiffer",
     [](PoolCall& c) { c.grad_output.shape[1] = 4; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[1] is 4", "expected 3"}},
    {"FloorSizeDiffers",
     [](PoolCall& c) { c.grad_output.shape[2] = 5; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[2] is 5", "expected 4", "floor mode"}},
    {"CeilSizeDiffers",
     [](PoolCall& c) {
       c.input.shape[3] = c.grad_input.shape[3] = 9;
       c.ceil_mode = true;
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"grad_output_desc.shape[3] is 4", "expected 5", "ceil mode"}},
    {"KernelDoesNotFit",
     [](PoolCall& c) {
       c.kernel_size = {2, 9};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"kernel does not fit"}},
    {"InputSizeZero",
     [](PoolCall& c) { c.input.shape[2] = c.grad_input.shape[2] = 0; },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"input_desc.shape[2] is 0"}},
    {"KernelOf32Bits",
     [](PoolCall& c) {
       c.kernel_size = {UINT32_MAX, UINT32_MAX};
     },
     INFINI_STATUS_BAD_TENSOR_SHAPE,
     {"does not fit"}},
    {"KernelOf64BitsIn1d",
     [](PoolCall& c) {
       c.grad_input.shape = c.input.shape = {2, 3, 8};
       c.grad_output.shape = {2, 3, 4};
       c.kernel_size = {SIZE_MAX};
     },
     INFINI_STATUS_BAD_PARAM,
     {"kernel_size[0] is -1"}},
    {"PadsOf64Bits",
     [](PoolCall& c) {
       c.pads = {0, SIZE_MAX};
     },
     INFINI_STATUS_BAD_PARAM,
     {"pads[1] is 18446744073709551615"}},
    // Strides.
    {"GradInputOverlaps",
     [](PoolCall& c) {
       c.grad_input.strides = {192, 64, 0, 1};
     },
     INFINI_STATUS_BAD_TENSOR_STRIDES,
     {"grad_input_desc.strides is 192x64x0x1", "share an address"}},
};

class PoolRules : public testing::TestWithParam<Rule> {};

TEST_P(PoolRules, AreEnforcedAndExplained) {
  PoolCall call;
  GetParam().break_it(call);
  const auto untouched = reinterpret_cast<infiniopAvgPoolBackwardDescriptor_t>(&call);
  infiniopAvgPoolBackwardDescriptor_t descriptor = untouched;
  const infiniStatus_t status = call.create(&descriptor);
  expect_refused(status, GetParam().status, kCreate, GetParam().fragments);
  EXPECT_EQ(descriptor, untouched) << "a failing call writes nothing";
}

INSTANTIATE_TEST_SUITE_P(Infiniop, PoolRules, testing::ValuesIn(kRules),
                         [](const auto& rule) { return std::string(rule.param.name); });

TEST(PoolRulesTable, ARefusalEndsWithALineThatReproducesIt) {
  PoolCall call;
  call.kernel_size = {2, 3};
  infiniopAvgPoolBackwardDescriptor_t descriptor = nullptr;
  expect_refused(call.create(&descriptor), INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate,
                 {"\nreproduce: retrograd explain \"avgpool ", "input=2x3x8x8", "kernel=2x3"});
}

TEST(PoolRulesTable, StartsFromALegalCall) { EXPECT_NE(make(PoolCall{}).get(), nullptr); }

TEST(PoolRanks, Only3To5AreServed) {
  for (size_t rank = 0; rank <= 8; ++rank) {
    SCOPED_TRACE(testing::Message() << "rank " << rank);
    const std::vector<size_t> ones(rank, 1);
    PoolCall call{{ones}, {ones}, {ones}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, false};
    infiniopAvgPoolBackwardDescriptor_t descriptor = nullptr;
    const infiniStatus_t status = call.create(&descriptor);
    if (rank >= 3 && rank <= 5) {
      EXPECT_EQ(status, INFINI_STATUS_SUCCESS) << retrogradGetLastError();
      EXPECT_EQ(infiniopDestroyAvgPoolBackwardDescriptor(descriptor), INFINI_STATUS_SUCCESS);
    } else {
      const std::string has = "input_desc.shape has rank " + std::to_string(rank);
      expect_refused(status, INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate, {has.c_str(), "3, 4 or 5"});
    }
  }
}

// Input 5, kernel 1, stride 3, ceil: plain size 3, but its last window would start at 6, beyond the input.
TEST(PoolCeilMode, TakesTheSizeWithAndWithoutTheLastWindowCorrection) {
  for (size_t size : {1u, 2u, 3u, 4u}) {
    PoolCall call{{{1, 1, 5}}, {{1, 1, size}}, {{1, 1, 5}}, {1}, {3}, {0}, true};
    infiniopAvgPoolBackwardDescriptor_t descriptor = nullptr;
    const infiniStatus_t status = call.create(&descriptor);
    if (size == 2 || size == 3) {
      EXPECT_EQ(status, INFINI_STATUS_SUCCESS) << retrogradGetLastError();
      EXPECT_EQ(infiniopDestroyAvgPoolBackwardDescriptor(descriptor), INFINI_STATUS_SUCCESS);
    } else {
      expect_refused(status, INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate, {"grad_output_desc.shape[2] is"});
    }
  }
}

}  // namespace
}  // namespace retrograd::infini_test::pool_rules_test
