// SPDX-License-Identifier: Apache-2.0
// The table of product rules, and the predicates that its rows name.
#include "problem/product_rules.h"

#include <fmt/format.h>

#include "problem/problem.h"

namespace retrograd::problem {
namespace {

struct NamedTensor {
  const TensorView* view;
  const char* name;
};

// Outputs that the mask leaves out are nobody's business.
std::vector<NamedTensor> tensors_of(const Request& request) {
  std::vector<NamedTensor> all;
  if (const auto* r = std::get_if<ConvRequest>(&request)) {
    all = {
        {&r->grad_output, r->names.grad_output}, {&r->input, r->names.input}, {&r->weight, r->names.weight}};
    if (r->bias) all.push_back({&*r->bias, r->names.bias});
    if (r->grad_input) all.push_back({&*r->grad_input, r->names.grad_input});
    if (r->grad_weight) all.push_back({&*r->grad_weight, r->names.grad_weight});
    if (r->grad_bias) all.push_back({&*r->grad_bias, r->names.grad_bias});
  } else if (const auto* t = std::get_if<ConvTbcRequest>(&request)) {
    all = {{&t->grad_output, t->names.grad_output}, {&t->input, t->names.input},
           {&t->weight, t->names.weight},           {&t->bias, t->names.bias},
           {&t->grad_input, t->names.grad_input},   {&t->grad_weight, t->names.grad_weight},
           {&t->grad_bias, t->names.grad_bias}};
    if (t->forward) all.resize(4);
  }
  return all;
}

std::string has_dtype(const NamedTensor& tensor) {
  return fmt::format("{}.dtype is {}", tensor.name, name_of(tensor.view->dtype));
}

std::string find_8bit(const Request& request, const ProductRule&) {
  for (const NamedTensor& tensor : tensors_of(request))
    if (is_8bit(tensor.view->dtype)) return has_dtype(tensor);
  return "";
}

std::string find_8bit_beside_grad_weight(const Request& request, const ProductRule&) {
  const auto& grad_weight = std::get<ConvTbcRequest>(request).grad_weight;
  for (const NamedTensor& tensor : tensors_of(request))
    if (is_8bit(tensor.view->dtype) && tensor.view != &grad_weight) return has_dtype(tensor);
  return "";
}

std::string find_bf16(const Request& request, const ProductRule&) {
  for (const NamedTensor& tensor : tensors_of(request))
    if (tensor.view->dtype == DType::kBF16) return has_dtype(tensor);
  return "";
}

// cubeMathType and the type that products are made in.
struct Math {
  int64_t mode = 0;
  const char* name = "";
  std::optional<DType> compute;
};

Math math_of(const Request& request) {
  if (const auto* tbc = std::get_if<ConvTbcRequest>(&request))
    return {tbc->math.mode, tbc->names.math_mode, tbc->input.dtype};
  const auto& conv = std::get<ConvRequest>(request);
  const auto compute = promote(conv);
  return {conv.math.mode, conv.names.math_mode,
          compute.is_ok() ? std::optional(compute.value()) : std::nullopt};
}

template <int64_t kMode, bool (*kConcerned)(DType)>
std::string find_math(const Request& request, const ProductRule&) {
  const Math math = math_of(request);
  if (math.mode != kMode || !math.compute || !kConcerned(*math.compute)) return "";
  return fmt::format("{} is {} and the operands are {}", math.name, math.mode, name_of(*math.compute));
}
bool is_f32(DType dtype) { return dtype == DType::kF32; }
bool is_not_f32(DType dtype) { return dtype != DType::kF32; }
bool is_bf16(DType dtype) { return dtype == DType::kBF16; }
bool is_any(DType) { return true; }

bool in_form(const ConvRequest& r, AxisLimit::Form form) {
  return form == AxisLimit::Form::kEither || (form == AxisLimit::Form::kTransposed) == r.transposed;
}

bool well_formed(const ConvRequest& r) {
  const int rank = r.input.shape.rank();
  return rank >= 3 && rank <= 5 && r.weight.shape.rank() == rank;
}

// Whether the limit is about axis `axis` of a convolution.
bool concerns_axis(const ConvRequest& r, const AxisLimit& limit, int axis) {
  const int spatial = r.input.shape.rank() - 2;
  if (!in_form(r, limit.form) || (limit.spatial_rank != 0 && limit.spatial_rank != spatial)) return false;
  const bool is_depth = spatial == 3 && axis == 0;
  return limit.axes == AxisLimit::Axes::kAll || (limit.axes == AxisLimit::Axes::kDepth) == is_depth;
}

std::string beyond(const std::string& argument, int64_t value, const AxisLimit& limit) {
  if (value >= limit.lowest && value <= limit.highest) return "";
  return fmt::format("{} is {}, expected {} to {}", argument, value, limit.lowest, limit.highest);
}

std::string find_kernel(const Request& request, const ProductRule& rule) {
  const auto& r = std::get<ConvRequest>(request);
  if (!well_formed(r)) return "";
  // Kernels without taps come with inputs without elements, which all products take.
  const bool empty_input = r.input.shape[0] == 0 || (!r.transposed && r.input.shape[1] == 0);
  for (int dim = 2; dim < r.weight.shape.rank(); ++dim) {
    const int64_t size = r.weight.shape[dim];
    if (!concerns_axis(r, rule.limit, dim - 2) || (size == 0 && empty_input)) continue;
    if (auto what = beyond(fmt::format("{}.shape[{}]", r.names.weight, dim), size, rule.limit); !what.empty())
      return what;
  }
  return "";
}

template <std::vector<int64_t> ConvRequest::*kList, const char* ConvNames::*kName>
std::string find_attribute(const Request& request, const ProductRule& rule) {
  const auto& r = std::get<ConvRequest>(request);
  if (!well_formed(r)) return "";
  const auto& values = r.*kList;
  const auto axes = static_cast<size_t>(r.input.shape.rank() - 2);
  if (values.size() != axes && values.size() != 2 * axes) return "";
  for (size_t i = 0; i < values.size(); ++i) {
    if (!concerns_axis(r, rule.limit, static_cast<int>(i * axes / values.size()))) continue;
    if (auto what = beyond(fmt::format("{}[{}]", r.names.*kName, i), values[i], rule.limit); !what.empty())
      return what;
  }
  return "";
}
constexpr auto find_stride = find_attribute<&ConvRequest::stride, &ConvNames::stride>;
constexpr auto find_padding = find_attribute<&ConvRequest::padding, &ConvNames::padding>;
constexpr auto find_dilation = find_attribute<&ConvRequest::dilation, &ConvNames::dilation>;

std::string find_bias_sizes(const Request& request, const ProductRule&) {
  const auto& r = std::get<ConvRequest>(request);
  const auto& sizes = r.for_products.bias_sizes;
  const auto channels = output_channels(r);
  if (!r.grad_bias || !sizes || !channels || *sizes == std::vector<int64_t>{*channels}) return "";
  return fmt::format("{} is [{}], expected [{}]", r.names.bias_sizes, joined(*sizes, ", "), *channels);
}

std::string other_type(const NamedTensor& tensor, const NamedTensor& as) {
  if (tensor.view->dtype == as.view->dtype) return "";
  return fmt::format("{}, expected {} as {}", has_dtype(tensor), name_of(as.view->dtype), as.name);
}

std::string find_grad_input_type(const Request& request, const ProductRule&) {
  const auto& r = std::get<ConvRequest>(request);
  if (!r.grad_input) return "";
  return other_type({&*r.grad_input, r.names.grad_input}, {&r.input, r.names.input});
}

// gradBias has no 8-bit type anywhere: gradients of such outputs are left out.
std::string find_grad_bias_type(const Request& request, const ProductRule&) {
  const auto& r = std::get<ConvRequest>(request);
  if (!r.grad_bias || is_8bit(r.grad_output.dtype)) return "";
  return other_type({&*r.grad_bias, r.names.grad_bias}, {&r.grad_output, r.names.grad_output});
}

std::string other_format(Format format, const char* name, Format as, const char* as_name) {
  if (format == as || format == Format::kUnsaid || as == Format::kUnsaid) return "";
  return fmt::format("{}.format is {}, expected {} as {}", name, name_of(format), name_of(as), as_name);
}

std::string find_formats(const Request& request, const ProductRule&) {
  const auto& r = std::get<ConvRequest>(request);
  const ConvFormats& f = r.for_products.formats;
  const ConvNames& n = r.names;
  std::string what = other_format(f.grad_output, n.grad_output, f.input, n.input);
  if (what.empty() && r.grad_input) what = other_format(f.grad_input, n.grad_input, f.input, n.input);
  if (what.empty() && r.grad_weight) what = other_format(f.grad_weight, n.grad_weight, f.weight, n.weight);
  return what;
}

std::string find_tbc_kernel(const Request& request, const ProductRule& rule) {
  const auto& r = std::get<ConvTbcRequest>(request);
  if (r.weight.shape.rank() != 3) return "";
  return beyond(fmt::format("{}.shape[0]", r.names.weight), r.weight.shape[0], rule.limit);
}

std::string find_tbc_pad(const Request& request, const ProductRule& rule) {
  const auto& r = std::get<ConvTbcRequest>(request);
  return beyond(r.names.padding, r.pad, rule.limit);
}

std::string find_output_type(const Request& request, const ProductRule&) {
  return std::visit(
      [](const auto& r) {
        return other_type({&r.grad_output, r.names.grad_output}, {&r.input, r.names.input});
      },
      request);
}

std::string find_tbc_grad_weight_type(const Request& request, const ProductRule&) {
  const auto& r = std::get<ConvTbcRequest>(request);
  return other_type({&r.grad_weight, r.names.grad_weight}, {&r.weight, r.names.weight});
}

std::string find_tbc_result_types(const Request& request, const ProductRule&) {
  const auto& r = std::get<ConvTbcRequest>(request);
  const std::string what = other_type({&r.grad_input, r.names.grad_input}, {&r.input, r.names.input});
  return what.empty() ? other_type({&r.grad_bias, r.names.grad_bias}, {&r.bias, r.names.bias}) : what;
}

constexpr ProductSet kAll{Product::kA2, Product::kA3, Product::k910_95, Product::kTraining};
constexpr ProductSet kOlder{Product::kA2, Product::kA3, Product::kTraining};  // all but 910_95
constexpr ProductSet kA2A3{Product::kA2, Product::kA3};
constexpr ProductSet k910{Product::k910_95};
constexpr ProductSet kTraining{Product::kTraining};

constexpr auto kPlain = AxisLimit::Form::kPlain, kTransposed = AxisLimit::Form::kTransposed,
               kEither = AxisLimit::Form::kEither;
constexpr auto kDepth = AxisLimit::Axes::kDepth, kPlane = AxisLimit::Axes::kPlane,
               kAllAxes = AxisLimit::Axes::kAll;
constexpr Code kInvalid = Code::kInvalidArgument, kType = Code::kBadDtype;

// clang-format off
constexpr ProductRule kRules[] = {
    {"conv.8bit", kOlder, kType, "no tensor is HIFLOAT8 or FLOAT8_E4M3FN", find_8bit},
    {"conv.bf16", kTraining, kType, "no tensor is BF16", find_bf16},
    {"conv.math_3", kTraining, kInvalid, "FLOAT does not take cubeMathType 3", find_math<3, is_f32>},
    {"conv.kernel", kOlder, kInvalid, "kernel H, W (1-D: L) of a plain convolution", find_kernel, {kPlain, kPlane, 1, 511}},
    {"conv.kernel", kOlder, kInvalid, "kernel H, W (1-D: L) of a transposed convolution", find_kernel, {kTransposed, kPlane, 1, 255}},
    {"conv.kernel", k910, kInvalid, "kernel H, W (1-D: L)", find_kernel, {kEither, kPlane, 1, 255}},
    {"conv.stride", kAll, kInvalid, "stride H, W of a plain 3-D convolution", find_stride, {kPlain, kPlane, 1, 63, 3}},
    {"conv.stride", kOlder, kInvalid, "stride D of a transposed convolution", find_stride, {kTransposed, kDepth, 1, 1000000}},
    {"conv.stride", kOlder, kInvalid, "stride H, W (1-D: L) of a transposed convolution", find_stride, {kTransposed, kPlane, 1, 63}},
    {"conv.padding", kAll, kInvalid, "padding H, W (1-D: L) of a plain convolution", find_padding, {kPlain, kPlane, 0, 255}},
    {"conv.padding", kOlder, kInvalid, "padding D of a transposed convolution", find_padding, {kTransposed, kDepth, 0, 1000000}},
    {"conv.padding", kOlder, kInvalid, "padding H, W (1-D: L) of a transposed convolution", find_padding, {kTransposed, kPlane, 0, 255}},
    {"conv.dilation", kAll, kInvalid, "dilation of a plain convolution", find_dilation, {kPlain, kAllAxes, 1, 255}},
    {"conv.dilation", kOlder, kInvalid, "dilation D of a transposed convolution", find_dilation, {kTransposed, kDepth, 1, 1000000}},
    {"conv.dilation", kOlder, kInvalid, "dilation H, W (1-D: L) of a transposed convolution", find_dilation, {kTransposed, kPlane, 1, 255}},
    {"conv.bias_sizes", kAll, kInvalid, "biasSizes is [Cout] where the bias gradient is asked for", find_bias_sizes},
    {"conv.grad_input_type", kAll, kType, "gradInput has input's type", find_grad_input_type},
    {"conv.grad_bias_type", kAll, kType, "gradBias has gradOutput's type", find_grad_bias_type},
    {"conv.output_type", kAll, kType, "output has input's type", find_output_type},
    {"conv.formats", kAll, kInvalid, "gradOutput (forward: output), input and gradInput have one format, weight and gradWeight too", find_formats},
    {"tbc.8bit", kOlder, kType, "no tensor is HIFLOAT8 or FLOAT8_E4M3FN", find_8bit},
    {"tbc.8bit", k910, kType, "no tensor but gradWeight is HIFLOAT8 or FLOAT8_E4M3FN", find_8bit_beside_grad_weight},
    {"tbc.bf16", kTraining, kType, "no tensor is BF16", find_bf16},
    {"tbc.math_0", kOlder, kInvalid, "FLOAT does not take cubeMathType 0", find_math<0, is_f32>},
    {"tbc.math_2", kAll, kInvalid, "BF16 does not take cubeMathType 2", find_math<2, is_bf16>},
    {"tbc.math_3", kA2A3, kInvalid, "FLOAT does not take cubeMathType 3", find_math<3, is_f32>},
    {"tbc.math_3", k910, kInvalid, "only FLOAT takes cubeMathType 3", find_math<3, is_not_f32>},
    {"tbc.math_3", kTraining, kInvalid, "nothing takes cubeMathType 3", find_math<3, is_any>},
    {"tbc.kernel", k910, kInvalid, "K, the length of the weight", find_tbc_kernel, {kEither, kAllAxes, 1, 255}},
    {"tbc.pad", kAll, kInvalid, "pad", find_tbc_pad, {kEither, kAllAxes, 0, 255}},
    {"tbc.output_type", kAll, kType, "output has the inputs' type", find_output_type},
    {"tbc.result_types", kAll, kType, "gradInput and gradBias have the inputs' type", find_tbc_result_types},
    {"tbc.result_types", kOlder, kType, "gradWeight has the inputs' type", find_tbc_grad_weight_type},
};
// clang-format on

// What the request breaks of the rule, as a sentence; empty when nothing.
std::string sentence_of(const ProductRule& rule, const Request& request, Product product) {
  if (!rule.products.has(product) || !concerns(rule, request)) return "";
  const std::string what = rule.find(request, rule);
  if (what.empty()) return "";
  return fmt::format("{}: product {} refuses it, rule {}: {}", what, name_of(product), rule.name, rule.text);
}

}  // namespace

std::span<const ProductRule> product_rules() { return kRules; }

bool concerns(const ProductRule& rule, const Request& request) {
  const std::string_view name = rule.name;
  const bool of_output = name.ends_with(".output_type");
  const bool of_gradients = name == "conv.bias_sizes" || name == "conv.grad_input_type" ||
                            name == "conv.grad_bias_type" || name == "tbc.result_types";
  if (is_forward(request) ? of_gradients : of_output) return false;
  return (std::holds_alternative<ConvRequest>(request) && name.starts_with("conv.")) ||
         (std::holds_alternative<ConvTbcRequest>(request) && name.starts_with("tbc."));
}

std::vector<BrokenRule> broken_rules(const Request& request, Product product) {
  std::vector<BrokenRule> broken;
  for (const ProductRule& rule : kRules)
    if (std::string sentence = sentence_of(rule, request, product); !sentence.empty())
      broken.push_back({&rule, std::move(sentence)});
  return broken;
}

Status keep_product_rules(const Request& request, Product product) {
  for (const ProductRule& rule : kRules)
    if (std::string sentence = sentence_of(rule, request, product); !sentence.empty())
      return {rule.code, std::move(sentence)};
  return Status::ok();
}

std::optional<Product> product_of(const Request& request) {
  if (const auto* conv = std::get_if<ConvRequest>(&request)) return conv->math.product;
  if (const auto* tbc = std::get_if<ConvTbcRequest>(&request)) return tbc->math.product;
  return std::nullopt;
}

}  // namespace retrograd::problem
