// SPDX-License-Identifier: Apache-2.0
// Judges a conv_tbc request. A (T,B,C) tensor is a (B,C,T) one with other strides, so no pass knows of it.
#include <fmt/format.h>

#include <span>
#include <string>

#include "problem/conv_canonical.h"
#include "problem/problem.h"

namespace retrograd::problem {
namespace {

struct NamedView {
  const TensorView& view;
  const char* name;
};

Status judge_types(const ConvTbcRequest& r) {
  const ConvNames& n = r.names;
  const NamedView all[] = {{r.grad_output, n.grad_output}, {r.input, n.input},
                           {r.weight, n.weight},           {r.bias, n.bias},
                           {r.grad_input, n.grad_input},   {r.grad_weight, n.grad_weight},
                           {r.grad_bias, n.grad_bias}};
  const NamedView& model = all[r.forward ? 1 : 0];
  for (const auto& [view, name] : std::span(all).first(r.forward ? 4 : 7))
    if (is_8bit(view.dtype) && &view != &r.grad_weight)
      return Status(Code::kBadDtype, "{}.dtype is {}, expected f32, f16 or bf16", name, name_of(view.dtype));
  for (const auto& [view, name] : {all[1], all[2], all[3]})
    if (view.dtype != model.view.dtype)
      return Status(Code::kBadDtype, "{}.dtype is {}, expected {}: the type of {}", name, name_of(view.dtype),
                    name_of(model.view.dtype), model.name);
  return Status::ok();
}

Status judge_shapes(const ConvTbcRequest& r) {
  const ConvNames& n = r.names;
  RG_CHECK(expect_rank(r.grad_output, 3, n.grad_output, "(T_out, B, C_out)"));
  RG_CHECK(expect_rank(r.input, 3, n.input, "(T_in, B, C_in)"));
  RG_CHECK(expect_rank(r.weight, 3, n.weight, "(K, C_in, C_out)"));
  RG_CHECK(expect_rank(r.bias, 1, n.bias, "(C_out)"));
  RG_CHECK(check_view(r.grad_output, n.grad_output));
  RG_CHECK(check_view(r.input, n.input));
  RG_CHECK(check_view(r.weight, n.weight));
  RG_CHECK(check_view(r.bias, n.bias));
  if (r.pad < 0 || r.pad >= int64_t{1} << 31)
    return Status(Code::kInvalidArgument, "{} is {}, expected 0 to 2147483647", n.padding, r.pad);
  if (r.input.shape[2] != r.weight.shape[1])
    return Status(Code::kBadShape, "{}.shape[2] is {}, expected {} = {}.shape[1], the input channels",
                  n.input, r.input.shape[2], r.weight.shape[1], n.weight);
  if (r.bias.shape[0] != r.weight.shape[2])
    return Status(Code::kBadShape, "{}.shape[0] is {}, expected {} = {}.shape[2], the output channels",
                  n.bias, r.bias.shape[0], r.weight.shape[2], n.weight);
  const WindowSizes sizes{r.input.shape[0], r.weight.shape[0], 1, 1, r.pad, r.pad};
  const auto t_out = output_size(sizes);
  if (!t_out || *t_out < 0 || r.grad_output.shape[0] != *t_out) {
    const std::string how = fmt::format("{} + 2*{} - {} + 1 ({} T {}, {} {}, kernel {})", sizes.x, r.pad,
                                        sizes.kernel, n.input, sizes.x, n.padding, r.pad, sizes.kernel);
    if (t_out && *t_out < 0)
      return Status(Code::kBadShape,
                    "the kernel does not fit into the padded input: {}.shape[0] would be {} = {}",
                    n.grad_output, *t_out, how);
    return Status(Code::kBadShape, "{}.shape[0] is {}, expected {} = {}", n.grad_output,
                  r.grad_output.shape[0], t_out ? fmt::to_string(*t_out) : "a number beyond 64 bits", how);
  }
  RG_CHECK(expect_shape(r.grad_output, {*t_out, r.input.shape[1], r.weight.shape[2]}, n.grad_output,
                        "(T_out, B, C_out) of the input and the weight"));
  if (r.forward) return check_output_view(r.grad_output, n.grad_output);
  RG_CHECK(expect_shape(r.grad_input, r.input.shape, n.grad_input, "the shape of the input"));
  RG_CHECK(expect_shape(r.grad_weight, r.weight.shape, n.grad_weight, "the shape of the weight"));
  RG_CHECK(expect_shape(r.grad_bias, r.bias.shape, n.grad_bias, "the shape of the bias"));
  RG_CHECK(check_output_view(r.grad_input, n.grad_input));
  RG_CHECK(check_output_view(r.grad_weight, n.grad_weight));
  return check_output_view(r.grad_bias, n.grad_bias);
}

}  // namespace

Status fill_problem(const ConvTbcRequest& request, Problem& problem) {
  RG_CHECK(judge_shapes(request));
  RG_CHECK(judge_types(request));
  ConvCanonical conv;
  RG_TRY(conv.rounding,
         choose_rounding(request.math, request.names.math_mode, request.input.dtype, problem.warnings));
  conv.hf32_allowed = request.input.dtype == DType::kF32 && request.math.mode == 1 && !request.math.product;
  const TensorView grad_output = permuted(request.grad_output, {1, 2, 0});
  const TensorView input = permuted(request.input, {1, 2, 0});
  const TensorView weight = permuted(request.weight, {2, 1, 0});
  conv.grad_output = &grad_output;
  conv.input = &input;
  conv.weight = &weight;
  TensorView grad_input, grad_weight;
  conv.forward = request.forward;
  if (request.forward) {
    conv.bias = &request.bias;
  } else {
    grad_input = permuted(request.grad_input, {1, 2, 0});
    grad_weight = permuted(request.grad_weight, {2, 1, 0});
    conv.grad_input = &grad_input;
    conv.grad_weight = &grad_weight;
    conv.grad_bias = &request.grad_bias;
  }
  conv.axes[2] = {.x = request.input.shape[0],
                  .y = request.grad_output.shape[0],
                  .kernel = request.weight.shape[0],
                  .stride = 1,
                  .dilation = 1,
                  .pad_lo = request.pad};
  if (!positions_fit(conv.axes[2]))
    return Status(Code::kBadShape, "the window positions do not fit in 64 bits ({} {})",
                  request.names.padding, request.pad);
  fill_problem(conv, request.names, problem);
  return Status::ok();
}

}  // namespace retrograd::problem
