// SPDX-License-Identifier: Apache-2.0
// Products' limits of kernels and attributes, for aclnnConvolutionBackward and aclnnConvolution: on every
// axis, at the limit and one beyond it.
#include "products.h"

namespace retrograd::acl_test {
namespace {

struct Sample {
  Sizes input, kernel, stride, padding, dilation;
  bool transposed = false;
};

int64_t output_of(const Sample& s, size_t axis) {
  const int64_t reach = s.dilation[axis] * (s.kernel[axis] - 1) + 1;
  if (s.transposed) return (s.input[axis] - 1) * s.stride[axis] - 2 * s.padding[axis] + reach;
  return (s.input[axis] + 2 * s.padding[axis] - reach) / s.stride[axis] + 1;
}

// What both operators have; `outer` is gradOutput or output.
void set_attributes(const Sample& s, auto& c, TensorArg& outer) {
  c.transposed = s.transposed;
  c.input.shape = c.weight.shape = outer.shape = {1, 1};
  for (size_t axis = 0; axis < s.input.size(); ++axis) {
    c.input.shape.push_back(s.input[axis]);
    c.weight.shape.push_back(s.kernel[axis]);
    outer.shape.push_back(output_of(s, axis));
  }
  c.stride = s.stride;
  c.padding = s.padding;
  c.dilation = s.dilation;
  c.output_padding = Sizes(s.input.size(), 0);
}

ConvCall backward_of(const Sample& s) {
  ConvCall c;
  set_attributes(s, c, c.grad_output);
  c.grad_input.shape = c.input.shape;
  c.grad_weight.shape = c.weight.shape;
  c.grad_bias.shape = {1};
  c.bias_sizes = {1};
  return c;
}

ForwardConvCall forward_of(const Sample& s) {
  ForwardConvCall c;
  set_attributes(s, c, c.output);
  c.bias.shape = {1};
  return c;
}

enum class Attribute { kKernel, kStride, kPadding, kDilation };

// The value on one axis of a convolution that is otherwise 1x1x1 and steps by 1.
Sample sample_with(Attribute attribute, size_t spatial, bool transposed, size_t axis, int64_t value) {
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
  return s;
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
        const Sample sample = sample_with(limit.attribute, spatial, limit.transposed, axis, value);
        expect_case<ConvCall>({"", {}, refused, kRules[which], {what}}, backward_of(sample));
        expect_case<ForwardConvCall>({"", {}, refused, kRules[which], {what}}, forward_of(sample));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Acl, ProductLimits, ::testing::ValuesIn(kLimits),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace retrograd::acl_test
