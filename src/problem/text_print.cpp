// SPDX-License-Identifier: Apache-2.0
// Prints the one-line text form of a request. What has its default value is left out.
#include <fmt/format.h>

#include <algorithm>

#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::problem {
namespace {

class Line {
 public:
  Line(const char* kind, DType dtype) : text_(kind), dtype_(dtype) {}

  void tensor(const char* key, const TensorView& view) {
    text_ += fmt::format(" {}={}", key, to_string(view.shape));
    if (view.dtype != dtype_) text_ += fmt::format(":{}", name_of(view.dtype));
    if (!is_dense(view)) text_ += fmt::format("@{}", to_string(view.strides));
  }
  // Results are the dense tensors one expects, unless they are printed.
  void result(const char* key, const TensorView& view, const Dims& expected) {
    if (view.dtype != dtype_ || view.shape != expected || !is_dense(view)) tensor(key, view);
  }
  void list(const char* key, const std::vector<int64_t>& values, size_t count, int64_t normal) {
    const bool is_default = values.size() == count &&
                            std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == normal; });
    if (!is_default) text_ += fmt::format(" {}={}", key, values.empty() ? "none" : joined(values, "x"));
  }
  void number(const char* key, int64_t value, int64_t normal) {
    if (value != normal) text_ += fmt::format(" {}={}", key, value);
  }
  void word(const char* key, std::string_view value) { text_ += fmt::format(" {}={}", key, value); }
  void dtype() {
    if (dtype_ != DType::kF32) word("dtype", name_of(dtype_));
  }
  void product(Product product) { word("product", name_of(product)); }
  // Tensors that belong together have one format, unless it is printed.
  void formats(const ConvFormats& f) {
    if (f.grad_output == f.input && f.grad_input == f.input && f.grad_weight == f.weight) return;
    word("formats", fmt::format("{},{},{},{},{}", name_of(f.grad_output), name_of(f.input), name_of(f.weight),
                                name_of(f.grad_input), name_of(f.grad_weight)));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  DType dtype_;
};

const char* y_key(bool forward) { return forward ? "output" : "grad_output"; }

std::string print(const ConvRequest& r) {
  Line line("conv", r.input.dtype);
  const size_t axes = spatial_axes(r.input);
  line.tensor("input", r.input);
  line.tensor("weight", r.weight);
  line.tensor(y_key(r.forward), r.grad_output);
  if (r.bias) line.tensor("bias", *r.bias);
  line.list("stride", r.stride, axes, 1);
  line.list("padding", r.padding, axes, 0);
  line.list("dilation", r.dilation, axes, 1);
  line.number("transposed", r.transposed, 0);
  line.list("output_padding", r.output_padding, axes, 0);
  line.number("groups", r.groups, 1);
  line.number("forward", r.forward, 0);
  const std::string mask =
      fmt::format("{}{}{}", r.grad_input ? "i" : "", r.grad_weight ? "w" : "", r.grad_bias ? "b" : "");
  if (mask != "iwb" && !r.forward) line.word("mask", mask.empty() ? "none" : mask);
  if (r.grad_input) line.result("grad_input", *r.grad_input, r.input.shape);
  if (r.grad_weight) line.result("grad_weight", *r.grad_weight, r.weight.shape);
  if (r.grad_bias)
    line.result("grad_bias", *r.grad_bias,
                r.grad_output.shape.rank() > 1 ? Dims{r.grad_output.shape[1]} : Dims{});
  line.number("math", r.math.mode, 0);
  line.number("winograd", r.math.winograd, 0);
  line.dtype();
  if (r.rules.one_dtype) {
    line.word("rules", "infiniop");
  } else if (r.rules.follows_aclnn()) {
    line.word("rules", "aclnn");
  }
  if (r.math.product) line.product(*r.math.product);
  const auto channels = output_channels(r);
  if (r.for_products.bias_sizes && r.grad_bias && channels)
    line.list("bias_sizes", *r.for_products.bias_sizes, 1, *channels);
  line.formats(r.for_products.formats);
  return line.take();
}

std::string print(const ConvTbcRequest& r) {
  Line line("conv_tbc", r.input.dtype);
  line.tensor("input", r.input);
  line.tensor("weight", r.weight);
  line.tensor(y_key(r.forward), r.grad_output);
  line.result("bias", r.bias, r.weight.shape.rank() == 3 ? Dims{r.weight.shape[2]} : Dims{});
  line.number("pad", r.pad, 0);
  line.number("forward", r.forward, 0);
  if (!r.forward) {
    line.result("grad_input", r.grad_input, r.input.shape);
    line.result("grad_weight", r.grad_weight, r.weight.shape);
    line.result("grad_bias", r.grad_bias, r.bias.shape);
  }
  line.number("math", r.math.mode, 0);
  line.dtype();
  if (r.math.product) line.product(*r.math.product);
  return line.take();
}

std::string print(const AvgPoolRequest& r) {
  Line line("avgpool", r.input.dtype);
  line.tensor("input", r.input);
  line.tensor(y_key(r.forward), r.grad_output);
  line.number("forward", r.forward, 0);
  if (!r.forward) line.result("grad_input", r.grad_input, r.input.shape);
  line.list("kernel", r.kernel, 0, 0);
  if (!r.stride.empty()) line.list("stride", r.stride, 0, 0);
  line.list("padding", r.padding, 1, 0);
  line.number("ceil", r.ceil_mode, 0);
  line.number("count_include_pad", r.count_include_pad, 1);
  line.number("divisor", r.divisor_override, 0);
  line.number("spatial", r.spatial_rank, 0);
  line.dtype();
  if (r.uncorrected_ceil_sizes) line.word("rules", "infiniop");
  return line.take();
}

}  // namespace

std::string_view name_of(Format format) {
  static constexpr std::string_view kNames[] = {"-", "ncl", "nd", "nchw", "ncdhw"};
  return kNames[static_cast<size_t>(format)];
}

std::string to_text(const Request& request) {
  return std::visit([](const auto& r) { return print(r); }, request);
}

}  // namespace retrograd::problem
