// SPDX-License-Identifier: Apache-2.0
// Judges a convolution request, backward or forward, rule by rule, and makes the problem of it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "problem/conv_canonical.h"
#include "problem/problem.h"

namespace retrograd::problem {
namespace {

// The letters of the spatial axes, for messages: "L", "HW", "DHW".
std::string_view axis_letters(int spatial_rank) {
  return spatial_rank == 1 ? "L" : spatial_rank == 2 ? "HW" : "DHW";
}

// An attribute as one number, or one pair in front of and behind, for each spatial axis.
struct AxisPair {
  int64_t lo = 0;
  int64_t hi = 0;
};

class ConvJudge {
 public:
  explicit ConvJudge(const ConvRequest& request) : r_(request), names_(request.names) {}

  Status judge() {
    RG_CHECK(judge_ranks());
    RG_CHECK(judge_attributes());
    RG_CHECK(judge_channels());
    RG_CHECK(judge_spatial_sizes());
    RG_CHECK(judge_types());
    return judge_outputs();
  }

  const ConvCanonical& canonical() const { return conv_; }
  std::vector<std::string> warnings() && { return std::move(warnings_); }

 private:
  Status judge_ranks() {
    const int rank = r_.input.shape.rank();
    if (rank < 3 || rank > 5)
      return Status(Code::kBadShape,
                    "{}.shape has rank {} ({}), expected 3, 4 or 5: N, C and one to three spatial sizes",
                    names_.input, rank, to_string(r_.input.shape));
    RG_CHECK(expect_rank(r_.weight, rank, names_.weight, "the rank of the input"));
    RG_CHECK(expect_rank(r_.grad_output, rank, names_.grad_output, "the rank of the input"));
    RG_CHECK(check_view(r_.grad_output, names_.grad_output));
    RG_CHECK(check_view(r_.input, names_.input));
    RG_CHECK(check_view(r_.weight, names_.weight));
    spatial_rank_ = rank - 2;
    // With no batch or (plain) no channels there is nothing to slide over, and sizes of 0 become legal.
    empty_input_ = r_.input.shape[0] == 0 || (!r_.transposed && r_.input.shape[1] == 0);
    // Without a batch nothing of a transposed convolution but its weight is judged by size.
    weight_alone_ = r_.transposed && r_.input.shape[0] == 0;
    return Status::ok();
  }

  Status judge_length(const std::vector<int64_t>& values, const char* name, bool pairs_allowed) const {
    const auto axes = static_cast<size_t>(spatial_rank_);
    if (values.size() == axes || (pairs_allowed && values.size() == 2 * axes)) return Status::ok();
    return Status(Code::kInvalidArgument, "{} has {} entries, expected {}{} for a {}-D convolution", name,
                  values.size(), axes,
                  pairs_allowed ? fmt::format(" or {} (in front, behind; axis by axis)", 2 * axes) : "",
                  spatial_rank_);
  }

  Status judge_minimum(const std::vector<int64_t>& values, const char* name, int64_t minimum) const {
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] < minimum)
        return Status(Code::kInvalidArgument, "{}[{}] is {}, expected at least {}", name, i, values[i],
                      minimum);
    return Status::ok();
  }

  AxisPair pair_of(const std::vector<int64_t>& values, int axis, bool single_is_both) const {
    const auto i = static_cast<size_t>(axis);
    if (values.size() == static_cast<size_t>(spatial_rank_))
      return {single_is_both ? values[i] : 0, values[i]};
    return {values[2 * i], values[2 * i + 1]};
  }

  Status judge_attributes() {
    const bool two_dimensional = spatial_rank_ == 2;
    RG_CHECK(judge_length(r_.stride, names_.stride, false));
    RG_CHECK(judge_length(r_.padding, names_.padding, two_dimensional || r_.rules.asymmetric_any_rank));
    RG_CHECK(judge_length(r_.dilation, names_.dilation, false));
    RG_CHECK(judge_length(r_.output_padding, names_.output_padding, two_dimensional));
    RG_CHECK(judge_minimum(r_.stride, names_.stride, 1));
    RG_CHECK(judge_minimum(r_.padding, names_.padding, 0));
    RG_CHECK(judge_minimum(r_.dilation, names_.dilation, 1));
    const size_t entries_per_axis = r_.output_padding.size() / r_.stride.size();
    for (size_t i = 0; i < r_.output_padding.size(); ++i) {
      const int64_t value = r_.output_padding[i];
      const int64_t stride = r_.stride[i / entries_per_axis], dilation = r_.dilation[i / entries_per_axis];
      const int64_t limit = r_.forward ? std::max(stride, dilation) : stride;
      if (!r_.transposed && value != 0)
        return Status(Code::kInvalidArgument, "{}[{}] is {}, expected 0 as the convolution is not transposed",
                      names_.output_padding, i, value);
      // Beyond the stride it is places that are padded away otherwise, and then zeros: well defined, and left
      // to the interfaces that do not refuse it.
      const bool limited = r_.rules.follows_aclnn() || r_.rules.one_dtype;
      if (r_.transposed && limited && (value < 0 || value >= limit))
        return Status(Code::kInvalidArgument, "{}[{}] is {}, expected 0 to {}: less than the stride{}",
                      names_.output_padding, i, value, limit - 1, r_.forward ? " or the dilation" : "");
      if (r_.transposed && value < 0)
        return Status(Code::kInvalidArgument, "{}[{}] is {}, expected at least 0", names_.output_padding, i,
                      value);
    }
    return Status::ok();
  }

  Status judge_channels() {
    if (r_.groups < 1 || r_.groups > r_.rules.max_groups)
      return {Code::kInvalidArgument,
              r_.rules.max_groups == std::numeric_limits<int64_t>::max()
                  ? fmt::format("{} is {}, expected at least 1", names_.groups, r_.groups)
                  : fmt::format("{} is {}, expected 1 to {}", names_.groups, r_.groups, r_.rules.max_groups)};
    const Dims& input = r_.input.shape;
    const Dims& weight = r_.weight.shape;
    const Dims& grad_output = r_.grad_output.shape;
    if (grad_output[0] != input[0])
      return Status(Code::kBadShape, "{}.shape[0] is {}, expected {}: the batch of {}", names_.grad_output,
                    grad_output[0], input[0], names_.input);
    return r_.transposed ? judge_transposed_channels(input, weight, grad_output)
                         : judge_plain_channels(input, weight, grad_output);
  }

  Status judge_plain_channels(const Dims& input, const Dims& weight, const Dims& grad_output) const {
    if (checked_mul(weight[1], r_.groups) != input[1])
      return Status(Code::kInvalidArgument,
                    "{} is {}, but {} * {}.shape[1] ({}) must equal {}.shape[1], which is {}{}",
                    names_.groups, r_.groups, names_.groups, names_.weight, weight[1], names_.input, input[1],
                    nearest_groups(input[1], weight[1]));
    if (weight[0] < 1)
      return Status(Code::kBadShape, "{}.shape[0] is {}, expected at least 1 output channel", names_.weight,
                    weight[0]);
    if (weight[0] % r_.groups != 0)
      return Status(Code::kBadShape, "{}.shape[0] is {}, expected a multiple of {} = {}", names_.weight,
                    weight[0], names_.groups, r_.groups);
    if (grad_output[1] != weight[0])
      return Status(Code::kBadShape, "{}.shape[1] is {}, expected {} = {}.shape[0], the output channels",
                    names_.grad_output, grad_output[1], weight[0], names_.weight);
    return Status::ok();
  }

  Status judge_transposed_channels(const Dims& input, const Dims& weight, const Dims& grad_output) const {
    if (weight[0] != input[1])
      return Status(Code::kBadShape,
                    "{}.shape[0] is {}, expected {} = {}.shape[1], the input channels (transposed)",
                    names_.weight, weight[0], input[1], names_.input);
    if (weight[0] < 1)
      return Status(Code::kBadShape, "{}.shape[0] is {}, expected at least 1 input channel (transposed)",
                    names_.weight, weight[0]);
    if (weight[0] % r_.groups != 0)
      return Status(Code::kBadShape, "{}.shape[0] is {}, expected a multiple of {} = {}", names_.weight,
                    weight[0], names_.groups, r_.groups);
    if (weight[1] < 1 && !empty_input_)
      return Status(Code::kBadShape, "{}.shape[1] is {}, expected at least 1: only an empty batch allows 0",
                    names_.weight, weight[1]);
    if (checked_mul(weight[1], r_.groups) != grad_output[1] && !weight_alone_)
      return Status(Code::kInvalidArgument,
                    "{} is {}, but {} * {}.shape[1] ({}) must equal {}.shape[1], which is {} (transposed){}",
                    names_.groups, r_.groups, names_.groups, names_.weight, weight[1], names_.grad_output,
                    grad_output[1], nearest_groups(grad_output[1], weight[1]));
    return Status::ok();
  }

  std::string nearest_groups(int64_t channels, int64_t per_group) const {
    if (per_group < 1 || channels < per_group || channels % per_group != 0) return "";
    const int64_t groups = channels / per_group;
    if (groups > r_.rules.max_groups || r_.weight.shape[0] % groups != 0) return "";
    return fmt::format("; {} = {} would fit", names_.groups, groups);
  }

  Status judge_spatial_sizes() {
    if (weight_alone_) return leave_weight_alone();
    for (int axis = 0; axis < spatial_rank_; ++axis) RG_CHECK(judge_axis(axis));
    return Status::ok();
  }

  // Sizes that fit the weight in place of those that were given: both tensors are empty, and stay so.
  Status leave_weight_alone() {
    const auto channels = checked_mul(r_.weight.shape[1], r_.groups);
    if (!channels)
      return Status(Code::kBadShape, "{} * {}.shape[1] ({} * {}) does not fit in 64 bits", names_.groups,
                    names_.weight, r_.groups, r_.weight.shape[1]);
    Dims x{0, *channels}, y{0, r_.input.shape[1]};
    for (int axis = 0; axis < spatial_rank_; ++axis) {
      Window& window = conv_.axes[static_cast<size_t>(3 - spatial_rank_ + axis)];
      window.kernel = r_.weight.shape[axis + 2];
      window.x = std::max<int64_t>(window.kernel, 1);
      if (!positions_fit(window))
        return Status(Code::kBadShape, "{}.shape[{}] is {}: the window positions do not fit in 64 bits",
                      names_.weight, axis + 2, window.kernel);
      x.push_back(window.x);
      y.push_back(1);
    }
    empty_grad_output_view_ = dense_view(r_.grad_output.dtype, x);
    empty_input_view_ = dense_view(r_.input.dtype, y);
    return Status::ok();
  }

  Status judge_axis(int axis) {
    const int dim = axis + 2;
    const int64_t in = r_.input.shape[dim], kernel = r_.weight.shape[dim], out = r_.grad_output.shape[dim];
    for (auto [name, size] : {std::pair{names_.input, in}, std::pair{names_.weight, kernel}})
      if (size < 1 && !empty_input_)
        return Status(Code::kBadShape,
                      "{}.shape[{}] is {}, expected at least 1: only an empty batch{} allows 0", name, dim,
                      size, r_.transposed ? "" : " or no channels");
    const auto i = static_cast<size_t>(axis);
    const AxisPair pad = pair_of(r_.padding, axis, true), extra = pair_of(r_.output_padding, axis, false);
    const WindowSizes sizes{in, kernel, r_.stride[i], r_.dilation[i], pad.lo, pad.hi};
    RG_CHECK(r_.transposed ? judge_transposed_axis(axis, sizes, extra) : judge_plain_axis(axis, sizes));

    Window& window = conv_.axes[static_cast<size_t>(3 - spatial_rank_ + axis)];
    window = {.x = r_.transposed ? out : in,
              .y = r_.transposed ? in : out,
              .kernel = kernel,
              .stride = sizes.stride,
              .dilation = sizes.dilation,
              // Output padding in front moves the result away from the border, as less padding there would.
              .pad_lo = pad.lo - extra.lo};
    if (!positions_fit(window))
      return Status(Code::kBadShape, "the window positions do not fit in 64 bits ({})", given(axis, sizes));
    return Status::ok();
  }

  // "input W 224, padding 1+1, dilation 1, kernel 5, stride 2"
  std::string given(int axis, const WindowSizes& s) const {
    return fmt::format("{} {} {}, {} {}+{}, {} {}, kernel {}, {} {}", names_.input,
                       axis_letters(spatial_rank_)[static_cast<size_t>(axis)], s.x, names_.padding, s.pad_lo,
                       s.pad_hi, names_.dilation, s.dilation, s.kernel, names_.stride, s.stride);
  }

  Status judge_plain_axis(int axis, const WindowSizes& s) const {
    const int64_t out = r_.grad_output.shape[axis + 2];
    const auto expected = output_size(s);
    if (expected && *expected == out && (out > 0 || empty_input_)) return Status::ok();
    const std::string formula = fmt::format("floor(({} + {} + {} - {}*({}-1) - 1)/{}) + 1", s.x, s.pad_lo,
                                            s.pad_hi, s.dilation, s.kernel, s.stride);
    const std::string size = fmt::format("{}.shape[{}]", names_.grad_output, axis + 2);
    if (!expected)
      return Status(Code::kBadShape, "{} would be {}, which does not fit in 64 bits ({})", size, formula,
                    given(axis, s));
    if (*expected < 0 || (*expected == 0 && !empty_input_))
      return Status(Code::kBadShape,
                    "the kernel does not fit into the padded input: {} would be {} = {} ({})", size,
                    *expected, formula, given(axis, s));
    return Status(Code::kBadShape, "{} is {}, expected {} = {} ({})", size, out, *expected, formula,
                  given(axis, s));
  }

  Status judge_transposed_axis(int axis, const WindowSizes& s, const AxisPair& extra) const {
    const int64_t out = r_.grad_output.shape[axis + 2];
    const auto expected = transposed_output_size(s, s.x, extra.lo, extra.hi);
    if (expected && *expected == out && (out > 0 || empty_input_)) return Status::ok();
    const std::string size = fmt::format("{}.shape[{}]", names_.grad_output, axis + 2);
    const std::string formula = fmt::format("({} - 1)*{} - {} - {} + {}*({}-1) + 1 + {} + {}", s.x, s.stride,
                                            s.pad_lo, s.pad_hi, s.dilation, s.kernel, extra.lo, extra.hi);
    const std::string facts =
        fmt::format("{}, {} {}+{}, transposed", given(axis, s), names_.output_padding, extra.lo, extra.hi);
    if (!expected)
      return Status(Code::kBadShape, "{} would be {}, which does not fit in 64 bits ({})", size, formula,
                    facts);
    if (*expected < 0 || (*expected == 0 && !empty_input_))
      return Status(Code::kBadShape, "{} would be {} = {}, expected at least 1 ({})", size, *expected,
                    formula, facts);
    return Status(Code::kBadShape, "{} is {}, expected {} = {} ({})", size, out, *expected, formula, facts);
  }

  Status judge_types() {
    RG_TRY(const DType compute, promote(r_));
    RG_TRY(conv_.rounding, choose_rounding(r_.math, names_.math_mode, compute, warnings_));
    // Never unless the user says so. Where operands are to be rounded, what is made of them then is to be
    // exact; 0 is the promise of exact products where the interface has a choice.
    conv_.winograd_allowed = compute == DType::kF32 && r_.math.winograd &&
                             conv_.rounding == OperandRounding::kNone &&
                             (r_.math.mode == 1 || (r_.math.mode == 0 && !r_.rules.follows_aclnn()));
    conv_.hf32_allowed = compute == DType::kF32 && r_.math.mode == 1 && !r_.math.product;
    if (r_.forward) {
      RG_CHECK(judge_bias_type(compute));
      return judge_output_type(r_.grad_output, names_.grad_output, compute, is_8bit(compute));
    }
    RG_CHECK(judge_output_type(r_.grad_input, names_.grad_input, compute, is_8bit(compute)));
    RG_CHECK(judge_output_type(r_.grad_weight, names_.grad_weight, compute, compute == DType::kHiF8));
    return judge_output_type(r_.grad_bias, names_.grad_bias, compute, false);
  }

  Status judge_output_type(const std::optional<TensorView>& view, const char* name, DType compute,
                           bool compute_type_allowed) const {
    if (!view) return Status::ok();
    if (r_.rules.one_dtype && view->dtype != compute)
      return Status(Code::kBadDtype, "{}.dtype is {}, expected {}: one type for all tensors", name,
                    name_of(view->dtype), name_of(compute));
    if (!is_8bit(view->dtype) || (compute_type_allowed && view->dtype == compute)) return Status::ok();
    return Status(
        Code::kBadDtype, "{}.dtype is {}, expected f32, f16, bf16{}", name, name_of(view->dtype),
        compute_type_allowed ? fmt::format(" or {}, the type of the inputs", name_of(compute)) : "");
  }

  Status judge_bias_type(DType compute) const {
    if (!r_.bias || r_.bias->dtype == compute || (r_.bias->dtype == DType::kF32 && !r_.rules.one_dtype))
      return Status::ok();
    return Status(Code::kBadDtype, "{}.dtype is {}, expected {}{}", names_.bias, name_of(r_.bias->dtype),
                  name_of(compute),
                  r_.rules.one_dtype ? ": one type for all tensors" : ", the type of the products, or f32");
  }

  Status judge_outputs() {
    const TensorView& grad_output = weight_alone_ ? empty_grad_output_view_ : r_.grad_output;
    const int64_t c_out = grad_output.shape[1];
    if (r_.forward) RG_CHECK(check_output_view(r_.grad_output, names_.grad_output));
    if (r_.bias) {
      RG_CHECK(expect_shape(*r_.bias, {c_out}, names_.bias, "one element for each output channel"));
      RG_CHECK(check_view(*r_.bias, names_.bias));
    }
    if (r_.grad_input) {
      RG_CHECK(expect_shape(*r_.grad_input, r_.input.shape, names_.grad_input, "the shape of the input"));
      RG_CHECK(check_output_view(*r_.grad_input, names_.grad_input));
    }
    if (r_.grad_weight) {
      RG_CHECK(expect_shape(*r_.grad_weight, r_.weight.shape, names_.grad_weight, "the shape of the weight"));
      RG_CHECK(check_output_view(*r_.grad_weight, names_.grad_weight));
    }
    if (r_.grad_bias) {
      RG_CHECK(expect_shape(*r_.grad_bias, {c_out}, names_.grad_bias, "one element for each output channel"));
      RG_CHECK(check_output_view(*r_.grad_bias, names_.grad_bias));
    }
    const auto address = [](const std::optional<TensorView>& view) { return view ? &*view : nullptr; };
    conv_.forward = r_.forward;
    conv_.bias = address(r_.bias);
    conv_.grad_output = &grad_output;
    conv_.input = weight_alone_ ? &empty_input_view_ : &r_.input;
    conv_.weight = &r_.weight;
    conv_.grad_input = address(r_.grad_input);
    conv_.grad_weight = address(r_.grad_weight);
    conv_.grad_bias = address(r_.grad_bias);
    conv_.transposed = r_.transposed;
    conv_.groups = r_.groups;
    return Status::ok();
  }

  const ConvRequest& r_;
  const ConvNames& names_;
  int spatial_rank_ = 0;
  bool empty_input_ = false, weight_alone_ = false;
  TensorView empty_grad_output_view_, empty_input_view_;  // where the weight alone is judged
  ConvCanonical conv_;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<DType> promote(const ConvRequest& request) {
  // The output of a forward problem is no operand of a product.
  const DType types[] = {request.forward ? request.input.dtype : request.grad_output.dtype,
                         request.input.dtype, request.weight.dtype};
  if (types[0] == types[1] && types[1] == types[2]) return types[0];
  const std::string given =
      fmt::format("{}{} {}, {} {}",
                  request.forward ? "" : fmt::format("{} {}, ", request.names.grad_output, name_of(types[0])),
                  request.names.input, name_of(types[1]), request.names.weight, name_of(types[2]));
  if (request.rules.one_dtype)
    return Status(Code::kBadDtype, "dtypes differ ({}), expected one type for all tensors", given);
  for (DType type : types)
    if (is_8bit(type))
      return Status(Code::kBadDtype, "dtypes differ ({}), expected {} for all{}: 8-bit types do not mix",
                    given, name_of(type), request.forward ? "" : " three");
  return DType::kF32;
}

std::optional<int64_t> output_channels(const ConvRequest& request) {
  const Dims& weight = request.weight.shape;
  if (weight.rank() < 2 || request.groups < 1 || request.groups > request.rules.max_groups)
    return std::nullopt;
  return request.transposed ? checked_mul(weight[1], request.groups) : std::optional(weight[0]);
}

Status fill_problem(const ConvRequest& request, Problem& problem) {
  ConvJudge judge(request);
  RG_CHECK(judge.judge());
  fill_problem(judge.canonical(), request.names, problem);
  problem.warnings = std::move(judge).warnings();
  return Status::ok();
}

}  // namespace retrograd::problem
