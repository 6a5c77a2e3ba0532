// SPDX-License-Identifier: Apache-2.0
// The rules of products ("rules" in the file given to aclInit): every row of their tables, for every product,
// at the limit and one beyond it. What a product refuses here is taken without rules, so that it is the rule
// that refuses.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "run_call.h"

namespace retrograd::acl_test {
namespace {

constexpr const char* kProducts[] = {"a2", "a3", "910_95", "training"};
using Products = std::vector<std::string>;
const Products kNone, kAll{"a2", "a3", "910_95", "training"}, kOlder{"a2", "a3", "training"},
    kA2A3{"a2", "a3"}, kOnly910{"910_95"}, kOnlyTraining{"training"}, k910AndTraining{"910_95", "training"};

bool has(const Products& products, const std::string& product) {
  return std::find(products.begin(), products.end(), product) != products.end();
}

// An initialised acl that keeps the rules of a product; "" keeps none.
class Rules {
 public:
  explicit Rules(const std::string& product) {
    // Of this process: ctest runs tests side by side.
    const std::string path =
        ::testing::TempDir() + "retrograd_acl_rules_" + std::to_string(getpid()) + ".json";
    std::ofstream(path) << (product.empty() ? "{}" : "{\"rules\": \"" + product + "\"}");
    EXPECT_EQ(aclInit(path.c_str()), ACL_SUCCESS);
    std::remove(path.c_str());
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    (void)aclGetRecentErrMsg();
  }
  ~Rules() { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); }
  Rules(const Rules&) = delete;
  Rules& operator=(const Rules&) = delete;
  aclrtStream stream() const { return stream_; }

 private:
  aclrtStream stream_ = nullptr;
};

template <class Call>
void expect_taken(const Call& call) {
  const PhaseOne result = call.phase_one();
  EXPECT_EQ(result.status, ACLNN_SUCCESS) << result.message;
  if (result.status != ACLNN_SUCCESS) return;
  EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
}

// A call, the products that refuse it, the rule that they name and what it says.
template <class Call>
struct Case {
  std::string name;
  std::function<void(Call&)> make;
  Products refused;
  std::string rule;
  std::vector<std::string> fragments;
};

template <class Call>
void PrintTo(const Case<Call>& each, std::ostream* out) {
  *out << each.name;
}

template <class Call>
std::string name_of(const ::testing::TestParamInfo<Case<Call>>& info) {
  return info.param.name;
}

template <class Call>
void expect_case(const Case<Call>& each, const Call& call) {
  {
    const Rules without("");
    expect_taken(call);
  }
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    if (!has(each.refused, product)) {
      expect_taken(call);
      continue;
    }
    std::vector<std::string> fragments = each.fragments;
    fragments.push_back("product " + product + " refuses it, rule " + each.rule + ": ");
    fragments.push_back("reproduce: retrograd explain");
    fragments.push_back("product=" + product);
    EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, fragments));
  }
}

// --- Attributes and kernels of aclnnConvolutionBackward: one value on one axis, sizes that fit it.

struct Sample {
  Sizes input, kernel, stride, padding, dilation;
  bool transposed = false;
};

int64_t output_of(const Sample& s, size_t axis) {
  const int64_t reach = s.dilation[axis] * (s.kernel[axis] - 1) + 1;
  if (s.transposed) return (s.input[axis] - 1) * s.stride[axis] - 2 * s.padding[axis] + reach;
  return (s.input[axis] + 2 * s.padding[axis] - reach) / s.stride[axis] + 1;
}

ConvCall call_of(const Sample& s) {
  ConvCall c;
  c.transposed = s.transposed;
  c.input.shape = c.weight.shape = c.grad_output.shape = {1, 1};
  for (size_t axis = 0; axis < s.input.size(); ++axis) {
    c.input.shape.push_back(s.input[axis]);
    c.weight.shape.push_back(s.kernel[axis]);
    c.grad_output.shape.push_back(output_of(s, axis));
  }
  c.grad_input.shape = c.input.shape;
  c.grad_weight.shape = c.weight.shape;
  c.grad_bias.shape = {1};
  c.bias_sizes = {1};
  c.stride = s.stride;
  c.padding = s.padding;
  c.dilation = s.dilation;
  c.output_padding = Sizes(s.input.size(), 0);
  return c;
}

enum class Attribute { kKernel, kStride, kPadding, kDilation };

// The value on one axis of a convolution that is otherwise 1x1x1 and steps by 1.
ConvCall call_with(Attribute attribute, size_t spatial, bool transposed, size_t axis, int64_t value) {
  const Sizes ones(spatial, 1);
  Sample s{ones, ones, ones, Sizes(spatial, 0), ones, transposed};
  switch (attribute) {
    case Attribute::kKernel:
      s.kernel[axis] = value;
      if (!transposed) s.input[axis] = value;
      break;
    case Attribute::kStride:
      s.stride[axis] = value;
      s.input[axis] = 2;
      break;
    case Attribute::kPadding:
      s.padding[axis] = value;
      if (transposed) {  // what is cut away must be there
        const bool depth = spatial == 3 && axis == 0;
        s.input[axis] = 4;
        s.stride[axis] = depth ? std::min<int64_t>(value, 1000000) : 63;
        s.kernel[axis] = depth ? 1 : 255;
        s.dilation[axis] = depth ? 1 : 2;
      }
      break;
    case Attribute::kDilation:
      s.dilation[axis] = value;
      s.kernel[axis] = 2;
      if (!transposed) s.input[axis] = value + 1;
      break;
  }
  return call_of(s);
}

struct Value {
  int64_t value;
  Products refused;
};

struct Limit {
  const char* name;
  Attribute attribute;
  std::vector<size_t> spatial;
  bool transposed;
  bool depth;  // D, not H and W (1-D: L)
  std::vector<Value> values;
};
void PrintTo(const Limit& limit, std::ostream* out) { *out << limit.name; }

const Limit kLimits[] = {
    {"PlainKernel",
     Attribute::kKernel,
     {1, 2, 3},
     false,
     false,
     {{1, kNone}, {255, kNone}, {256, kOnly910}, {511, kOnly910}, {512, kAll}}},
    {"PlainKernelD", Attribute::kKernel, {3}, false, true, {{512, kNone}}},
    {"TransposedKernel", Attribute::kKernel, {1, 2, 3}, true, false, {{1, kNone}, {255, kNone}, {256, kAll}}},
    {"TransposedKernelD", Attribute::kKernel, {3}, true, true, {{512, kNone}}},
    {"PlainStride12", Attribute::kStride, {1, 2}, false, false, {{1, kNone}, {64, kNone}, {1000, kNone}}},
    {"PlainStride3", Attribute::kStride, {3}, false, false, {{1, kNone}, {63, kNone}, {64, kAll}}},
    {"PlainStrideD", Attribute::kStride, {3}, false, true, {{64, kNone}, {1000001, kNone}}},
    {"TransposedStride", Attribute::kStride, {1, 2, 3}, true, false, {{1, kNone}, {63, kNone}, {64, kOlder}}},
    {"TransposedStrideD",
     Attribute::kStride,
     {3},
     true,
     true,
     {{64, kNone}, {1000000, kNone}, {1000001, kOlder}}},
    {"PlainPadding", Attribute::kPadding, {1, 2, 3}, false, false, {{0, kNone}, {255, kNone}, {256, kAll}}},
    {"PlainPaddingD", Attribute::kPadding, {3}, false, true, {{256, kNone}, {1000001, kNone}}},
    {"TransposedPadding", Attribute::kPadding, {1, 2, 3}, true, false, {{255, kNone}, {256, kOlder}}},
    {"TransposedPaddingD",
     Attribute::kPadding,
     {3},
     true,
     true,
     {{256, kNone}, {1000000, kNone}, {1000001, kOlder}}},
    {"PlainDilation", Attribute::kDilation, {1, 2, 3}, false, false, {{1, kNone}, {255, kNone}, {256, kAll}}},
    {"PlainDilationD", Attribute::kDilation, {3}, false, true, {{255, kNone}, {256, kAll}}},
    {"TransposedDilation", Attribute::kDilation, {1, 2, 3}, true, false, {{255, kNone}, {256, kOlder}}},
    {"TransposedDilationD",
     Attribute::kDilation,
     {3},
     true,
     true,
     {{256, kNone}, {1000000, kNone}, {1000001, kOlder}}},
};

class ProductLimits : public ::testing::TestWithParam<Limit> {};

TEST_P(ProductLimits, AreKeptOnEveryAxis) {
  constexpr const char* kRules[] = {"conv.kernel", "conv.stride", "conv.padding", "conv.dilation"};
  constexpr const char* kNames[] = {"weight.shape", "stride", "padding", "dilation"};
  const Limit& limit = GetParam();
  const auto which = static_cast<size_t>(limit.attribute);
  for (const size_t spatial : limit.spatial) {
    const size_t first = spatial == 3 && !limit.depth ? 1 : 0, last = limit.depth ? 1 : spatial;
    for (size_t axis = first; axis < last; ++axis) {
      for (const auto& [value, refused] : limit.values) {
        SCOPED_TRACE(testing::Message() << spatial << "-D, axis " << axis << ", value " << value);
        const size_t index = limit.attribute == Attribute::kKernel ? axis + 2 : axis;
        const std::string what =
            std::string(kNames[which]) + "[" + std::to_string(index) + "] is " + std::to_string(value);
        expect_case<ConvCall>({"", {}, refused, kRules[which], {what}},
                              call_with(limit.attribute, spatial, limit.transposed, axis, value));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Acl, ProductLimits, ::testing::ValuesIn(kLimits),
                         [](const auto& row) { return std::string(row.param.name); });

// --- The other rules of aclnnConvolutionBackward.

void of_type(ConvCall& c, aclDataType type) {
  const bool wide = type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
  for (TensorArg* tensor : c.inputs()) tensor->dtype = type;
  c.grad_input.dtype = type;
  c.grad_weight.dtype = c.grad_bias.dtype = wide ? type : ACL_FLOAT;
}

using ConvCase = Case<ConvCall>;
const ConvCase kConvCases[] = {
    {"Float", [](ConvCall& c) { of_type(c, ACL_FLOAT); }, kNone, "", {}},
    {"Float16", [](ConvCall& c) { of_type(c, ACL_FLOAT16); }, kNone, "", {}},
    {"Bf16",
     [](ConvCall& c) { of_type(c, ACL_BF16); },
     kOnlyTraining,
     "conv.bf16",
     {"gradOutput.dtype is bf16"}},
    {"Bf16Result",
     [](ConvCall& c) { c.grad_weight.dtype = ACL_BF16; },
     kOnlyTraining,
     "conv.bf16",
     {"gradWeight.dtype is bf16"}},
    {"HiFloat8",
     [](ConvCall& c) { of_type(c, ACL_HIFLOAT8); },
     kOlder,
     "conv.8bit",
     {"gradOutput.dtype is hif8"}},
    {"HiFloat8AllOfIt",
     [](ConvCall& c) {
       of_type(c, ACL_HIFLOAT8);
       c.grad_weight.dtype = ACL_HIFLOAT8;
     },
     kOlder,
     "conv.8bit",
     {"hif8"}},
    {"Float8E4M3",
     [](ConvCall& c) { of_type(c, ACL_FLOAT8_E4M3FN); },
     kOlder,
     "conv.8bit",
     {"gradOutput.dtype is e4m3"}},
    {"FloatMath0", [](ConvCall& c) { c.cube_math_type = 0; }, kNone, "", {}},
    {"FloatMath1", [](ConvCall& c) { c.cube_math_type = 1; }, kNone, "", {}},
    {"FloatMath2", [](ConvCall& c) { c.cube_math_type = 2; }, kNone, "", {}},
    {"FloatMath3",
     [](ConvCall& c) { c.cube_math_type = 3; },
     kOnlyTraining,
     "conv.math_3",
     {"cubeMathType is 3 and the operands are f32"}},
    {"MixedMath3",
     [](ConvCall& c) {
       c.weight.dtype = ACL_FLOAT16;
       c.cube_math_type = 3;
     },
     kOnlyTraining,
     "conv.math_3",
     {"cubeMathType is 3 and the operands are f32"}},
    {"Float16Math0", [](ConvCall& c) { of_type(c, ACL_FLOAT16), c.cube_math_type = 0; }, kNone, "", {}},
    {"Float16Math3", [](ConvCall& c) { of_type(c, ACL_FLOAT16), c.cube_math_type = 3; }, kNone, "", {}},
    {"BiasSizesOfAnotherSize",
     [](ConvCall& c) { c.bias_sizes = {5}; },
     kAll,
     "conv.bias_sizes",
     {"biasSizes is [5], expected [4]", "bias_sizes=5"}},
    {"BiasSizesOfTwo",
     [](ConvCall& c) {
       c.bias_sizes = {4, 4};
     },
     kAll,
     "conv.bias_sizes",
     {"biasSizes is [4, 4], expected [4]"}},
    {"BiasSizesEmpty",
     [](ConvCall& c) { c.bias_sizes = ArrayArg(Sizes{}); },
     kAll,
     "conv.bias_sizes",
     {"biasSizes is [], expected [4]"}},
    {"BiasSizesNobodyAskedFor",
     [](ConvCall& c) {
       c.bias_sizes = {5};
       c.mask.values = {1, 1, 0};
     },
     kNone,
     "",
     {}},
    {"BiasSizesTransposed", [](ConvCall& c) { make_transposed(c); }, kNone, "", {}},
    {"BiasSizesTransposedOfTheInput",
     [](ConvCall& c) {
       make_transposed(c);
       c.bias_sizes = {3};
     },
     kAll,
     "conv.bias_sizes",
     {"biasSizes is [3], expected [5]"}},
    {"GradInputOfAnotherType",
     [](ConvCall& c) { c.grad_input.dtype = ACL_FLOAT16; },
     kAll,
     "conv.grad_input_type",
     {"gradInput.dtype is f16, expected f32 as input"}},
    {"GradInputOfAnotherTypeNobodyAskedFor",
     [](ConvCall& c) {
       c.grad_input.dtype = ACL_FLOAT16;
       c.mask.values = {0, 1, 1};
     },
     kNone,
     "",
     {}},
    {"GradBiasOfAnotherType",
     [](ConvCall& c) { c.grad_bias.dtype = ACL_FLOAT16; },
     kAll,
     "conv.grad_bias_type",
     {"gradBias.dtype is f16, expected f32 as gradOutput"}},
    {"GradBiasOfGradOutputsType",
     [](ConvCall& c) { c.grad_bias.dtype = c.grad_output.dtype = ACL_FLOAT16; },
     kNone,
     "",
     {}},
    {"GradWeightOfAnotherType", [](ConvCall& c) { c.grad_weight.dtype = ACL_FLOAT16; }, kNone, "", {}},
    {"FormatsOfTheirOwnForTheWeights",
     [](ConvCall& c) { make_1d(c), c.weight.format = c.grad_weight.format = ACL_FORMAT_NCL; },
     kNone,
     "",
     {}},
    {"GradOutputOfAnotherFormat",
     [](ConvCall& c) { make_1d(c), c.grad_output.format = ACL_FORMAT_NCL; },
     kAll,
     "conv.formats",
     {"gradOutput.format is ncl, expected nd as input", "formats=ncl,nd,nd,nd,nd"}},
    {"GradInputOfAnotherFormat",
     [](ConvCall& c) { make_1d(c), c.grad_input.format = ACL_FORMAT_NCL; },
     kAll,
     "conv.formats",
     {"gradInput.format is ncl, expected nd as input"}},
    {"GradInputOfAnotherFormatNobodyAskedFor",
     [](ConvCall& c) {
       make_1d(c), c.grad_input.format = ACL_FORMAT_NCL;
       c.mask.values = {0, 1, 1};
     },
     kNone,
     "",
     {}},
    {"GradWeightOfAnotherFormat",
     [](ConvCall& c) { make_1d(c), c.grad_weight.format = ACL_FORMAT_NCL; },
     kAll,
     "conv.formats",
     {"gradWeight.format is ncl, expected nd as weight"}},
    {"PaddingBehindOnly",
     [](ConvCall& c) {
       c.padding = {0, 256, 0, 0};
       c.grad_output.shape = {2, 4, 262, 6};
     },
     kAll,
     "conv.padding",
     {"padding[1] is 256, expected 0 to 255"}},
    {"PaddingOfFourWithin",
     [](ConvCall& c) {
       c.padding = {255, 254, 0, 0};
       c.grad_output.shape = {2, 4, 515, 6};
     },
     kNone,
     "",
     {}},
    {"NullsNobodyAskedFor",
     [](ConvCall& c) {
       c.grad_input.null = c.grad_weight.null = c.grad_bias.null = c.bias_sizes.null = true;
       c.mask.values = {0, 0, 0};
     },
     kNone,
     "",
     {}},
    {"KernelWithoutTapsOfAnEmptyBatch",
     [](ConvCall& c) {
       c.grad_output.shape = {0, 4, 9, 9};
       c.input.shape = c.grad_input.shape = {0, 3, 8, 8};
       c.weight.shape = c.grad_weight.shape = {4, 3, 0, 0};
     },
     kNone,
     "",
     {}},
    {"TransposedEmptyBatch",
     [](ConvCall& c) {
       make_transposed(c);
       c.grad_output.shape = {0, 5, 0, 3};
       c.input.shape = c.grad_input.shape = {0, 3, 99, 0};
     },
     kNone,
     "",
     {}},
};

class ConvProducts : public ::testing::TestWithParam<ConvCase> {};

TEST_P(ConvProducts, RefuseWhatTheirTableSays) {
  ConvCall call;
  GetParam().make(call);
  expect_case(GetParam(), call);
}

INSTANTIATE_TEST_SUITE_P(Acl, ConvProducts, ::testing::ValuesIn(kConvCases), name_of<ConvCall>);

TEST(Products, RefuseNullsThatTheMaskAsksFor) {
  const std::pair<const char*, std::function<void(ConvCall&)>> cases[] = {
      {"gradInput is null",
       [](ConvCall& c) {
         c.grad_input.null = true, c.mask.values = {1, 0, 0};
       }},
      {"gradWeight is null",
       [](ConvCall& c) {
         c.grad_weight.null = true, c.mask.values = {0, 1, 0};
       }},
      {"gradBias is null",
       [](ConvCall& c) {
         c.grad_bias.null = true, c.mask.values = {0, 0, 1};
       }},
      {"biasSizes is null",
       [](ConvCall& c) {
         c.bias_sizes.null = true, c.mask.values = {0, 0, 1};
       }},
  };
  for (const std::string product : kProducts) {
    const Rules rules(product);
    for (const auto& [text, make] : cases) {
      ConvCall call;
      make(call);
      EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_NULLPTR, {text})) << product;
    }
  }
}

// --- aclnnConvTbcBackward, legal for every product with cubeMathType 1.

void of_type(TbcCall& c, aclDataType type) {
  for (TensorArg* tensor : c.inputs()) tensor->dtype = type;
  for (TensorArg* tensor : c.outputs()) tensor->dtype = type;
}

void with_math(TbcCall& c, aclDataType type, int8_t math) {
  of_type(c, type);
  c.cube_math_type = math;
}

void with_kernel(TbcCall& c, int64_t k) {
  c.weight.shape[0] = c.grad_weight.shape[0] = k;
  c.input.shape[0] = c.grad_input.shape[0] = 300;
  c.self.shape[0] = 300 + 2 - k + 1;
}

void with_pad(TbcCall& c, int64_t pad) {
  c.pad = pad;
  c.self.shape[0] = 6 + 2 * pad - 4 + 1;
}

using TbcCase = Case<TbcCall>;
const TbcCase kTbcCases[] = {
    {"Float", [](TbcCall&) {}, kNone, "", {}},
    {"Float16", [](TbcCall& c) { of_type(c, ACL_FLOAT16); }, kNone, "", {}},
    {"Bf16", [](TbcCall& c) { of_type(c, ACL_BF16); }, kOnlyTraining, "tbc.bf16", {"self.dtype is bf16"}},
    {"GradWeightOfHiFloat8",
     [](TbcCall& c) { c.grad_weight.dtype = ACL_HIFLOAT8; },
     kOlder,
     "tbc.8bit",
     {"gradWeight.dtype is hif8"}},
    {"GradWeightOfE4M3",
     [](TbcCall& c) { c.grad_weight.dtype = ACL_FLOAT8_E4M3FN; },
     kOlder,
     "tbc.8bit",
     {"gradWeight.dtype is e4m3"}},
    {"FloatMath0",
     [](TbcCall& c) { with_math(c, ACL_FLOAT, 0); },
     kOlder,
     "tbc.math_0",
     {"cubeMathType is 0 and the operands are f32"}},
    {"FloatMath1", [](TbcCall& c) { with_math(c, ACL_FLOAT, 1); }, kNone, "", {}},
    {"FloatMath2", [](TbcCall& c) { with_math(c, ACL_FLOAT, 2); }, kNone, "", {}},
    {"FloatMath3",
     [](TbcCall& c) { with_math(c, ACL_FLOAT, 3); },
     kOlder,
     "tbc.math_3",
     {"cubeMathType is 3 and the operands are f32"}},
    {"Float16Math0", [](TbcCall& c) { with_math(c, ACL_FLOAT16, 0); }, kNone, "", {}},
    {"Float16Math2", [](TbcCall& c) { with_math(c, ACL_FLOAT16, 2); }, kNone, "", {}},
    {"Float16Math3",
     [](TbcCall& c) { with_math(c, ACL_FLOAT16, 3); },
     k910AndTraining,
     "tbc.math_3",
     {"cubeMathType is 3 and the operands are f16"}},
    {"Bf16Math0", [](TbcCall& c) { with_math(c, ACL_BF16, 0); }, kOnlyTraining, "tbc.bf16", {"bf16"}},
    {"Bf16Math1", [](TbcCall& c) { with_math(c, ACL_BF16, 1); }, kOnlyTraining, "tbc.bf16", {"bf16"}},
    {"KernelOf1", [](TbcCall& c) { with_kernel(c, 1); }, kNone, "", {}},
    {"KernelOf255", [](TbcCall& c) { with_kernel(c, 255); }, kNone, "", {}},
    {"KernelOf256",
     [](TbcCall& c) { with_kernel(c, 256); },
     kOnly910,
     "tbc.kernel",
     {"weight.shape[0] is 256, expected 1 to 255"}},
    {"KernelOf0",
     [](TbcCall& c) { with_kernel(c, 0); },
     kOnly910,
     "tbc.kernel",
     {"weight.shape[0] is 0, expected 1 to 255"}},
    {"PadOf0", [](TbcCall& c) { with_pad(c, 0); }, kNone, "", {}},
    {"PadOf255", [](TbcCall& c) { with_pad(c, 255); }, kNone, "", {}},
    {"PadOf256", [](TbcCall& c) { with_pad(c, 256); }, kAll, "tbc.pad", {"pad is 256, expected 0 to 255"}},
    {"GradInputOfAnotherType",
     [](TbcCall& c) { c.grad_input.dtype = ACL_FLOAT16; },
     kAll,
     "tbc.result_types",
     {"gradInput.dtype is f16, expected f32 as input"}},
    {"GradBiasOfAnotherType",
     [](TbcCall& c) { c.grad_bias.dtype = ACL_FLOAT16; },
     kAll,
     "tbc.result_types",
     {"gradBias.dtype is f16, expected f32 as bias"}},
    {"GradWeightOfAnotherType",
     [](TbcCall& c) { c.grad_weight.dtype = ACL_FLOAT16; },
     kOlder,
     "tbc.result_types",
     {"gradWeight.dtype is f16, expected f32 as weight"}},
};

class TbcProducts : public ::testing::TestWithParam<TbcCase> {};

TEST_P(TbcProducts, RefuseWhatTheirTableSays) {
  TbcCall call;
  call.cube_math_type = 1;
  GetParam().make(call);
  expect_case(GetParam(), call);
}

INSTANTIATE_TEST_SUITE_P(Acl, TbcProducts, ::testing::ValuesIn(kTbcCases), name_of<TbcCall>);

// Mode 3 on BF16, which training refuses for its type, and mode 2 on BF16, which nobody takes, with rules or
// without.
TEST(Products, RefuseModesOfBf16) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    TbcCall call;
    with_math(call, ACL_BF16, 2);
    const bool training = product == "training";
    EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID,
                        {"product " + product, training ? "rule tbc.bf16" : "rule tbc.math_2: BF16"}));
    with_math(call, ACL_BF16, 3);
    if (has(kA2A3, product)) {
      expect_taken(call);
    } else {
      EXPECT_TRUE(
          refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID,
                  {"product " + product, training ? "rule tbc.bf16" : "rule tbc.math_3: only FLOAT"}));
    }
    ConvCall conv;
    of_type(conv, ACL_BF16);
    conv.cube_math_type = 2;
    EXPECT_TRUE(refused(conv.phase_one(), ACLNN_ERR_PARAM_INVALID,
                        {training ? "rule conv.bf16" : "cubeMathType is 2"}));
  }
  const Rules without("");
  TbcCall call;
  with_math(call, ACL_BF16, 2);
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {"cubeMathType is 2 (USE_FP16)"}));
}

// 8 bits are for gradWeight at most.
TEST(Products, RefuseTbcTensorsOf8Bits) {
  for (const std::string product : kProducts) {
    const Rules rules(product);
    for (const aclDataType type : {ACL_HIFLOAT8, ACL_FLOAT8_E4M3FN})
      for (size_t which = 0; which < 6; ++which) {
        TbcCall call;
        call.cube_math_type = 1;
        TensorArg* const others[] = {&call.self, &call.input,      &call.weight,
                                     &call.bias, &call.grad_input, &call.grad_bias};
        others[which]->dtype = type;
        EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {".dtype is "})) << product << which;
      }
  }
}

// --- Arithmetic. 1 + 2^-12 is half a step of HF32 above 1, 1 + 2^-11 half a step of FP16: the first rounds
// away from zero in HF32 and to 1 in FP16, the second stays in HF32 and becomes 1, which is even, in FP16.
constexpr float kHalfHf32 = 1.0f + 0x1p-12f, kHalfF16 = 1.0f + 0x1p-11f;

std::vector<Values> products_of(const Rules& rules, float x, int8_t math) {
  ConvCall call = call_of({{1}, {1}, {1}, {0}, {1}});
  call.cube_math_type = math;
  return run(call, {{x}, {4.0f}, {2.0f}}, rules.stream());
}

TEST(ProductArithmetic, OfMode1IsTheProductsOwn) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    const float hf32 = product == "training" ? 1.0f : kHalfF16,
                half = product == "training" ? 1.0f : kHalfF16;
    const auto first = products_of(rules, kHalfHf32, 1), second = products_of(rules, kHalfF16, 1);
    EXPECT_EQ(first[0], Values{2 * hf32});
    EXPECT_EQ(first[1], Values{4 * hf32});
    EXPECT_EQ(first[2], Values{kHalfHf32}) << "the bias gradient sums what was given";
    EXPECT_EQ(second[0], Values{2 * half});
    EXPECT_EQ(second[1], Values{4 * half});
    EXPECT_EQ(products_of(rules, kHalfHf32, 0)[0], Values{2 * kHalfHf32}) << "mode 0 keeps the operands";
  }
}

TEST(ProductArithmetic, OfMode1IsExactWithoutRules) {
  const Rules without("");
  if (std::string(aclrtGetSocName()) != "Retrograd-CPU") GTEST_SKIP() << "a GPU may use TF32";
  EXPECT_EQ(products_of(without, kHalfHf32, 1)[0], Values{2 * kHalfHf32});
}

TEST(ProductArithmetic, OfTbc) {
  for (const std::string product : kProducts) {
    SCOPED_TRACE(product);
    const Rules rules(product);
    TbcCall call;
    call.self.shape = call.input.shape = call.grad_input.shape = {1, 1, 1};
    call.weight.shape = call.grad_weight.shape = {1, 1, 1};
    call.bias.shape = call.grad_bias.shape = {1};
    call.pad = 0;
    call.cube_math_type = 1;
    const auto out = run(call, {{kHalfHf32}, {4.0f}, {2.0f}}, rules.stream());
    const float rounded = product == "training" ? 1.0f : kHalfF16;
    EXPECT_EQ(out[0], Values{2 * rounded});
    EXPECT_EQ(out[1], Values{4 * rounded});
    EXPECT_EQ(out[2], Values{kHalfHf32});
  }
}

// --- Names, and the way back to no rules.

TEST(Products, HaveNamesOfTheirChips) {
  const std::pair<const char*, const char*> names[] = {
      {"a2", "Ascend910B"}, {"a3", "Ascend910_93"}, {"910_95", "Ascend910_95"}, {"training", "Ascend910A"}};
  for (const auto& [product, name] : names) {
    const Rules rules(product);
    EXPECT_EQ(std::string(aclrtGetSocName()).rfind(name, 0), 0u) << aclrtGetSocName();
  }
  EXPECT_EQ(std::string(aclrtGetSocName()).rfind("Retrograd-", 0), 0u) << "finalize forgets the file";
}

// Pooling has no rules of products.
TEST(Products, LeavePoolingAlone) {
  for (const std::string product : kProducts) {
    const Rules rules(product);
    Pool2dCall call;
    for (TensorArg* tensor : {&call.grad_output, &call.self, &call.grad_input}) tensor->dtype = ACL_BF16;
    expect_taken(call);
  }
}

}  // namespace
}  // namespace retrograd::acl_test
