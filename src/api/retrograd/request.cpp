// SPDX-License-Identifier: Apache-2.0
// Reads a caller's structs, of which every number may be wrong, and makes a request of them.
#include "api/retrograd/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "api/retrograd/devices.h"
#include "base/settings.h"

namespace retrograd::api::own {
namespace {

using problem::TensorView;

struct NamedTensor {
  const retrogradTensor_t* tensor;
  const char* name;
};

Result<DType> dtype_of(retrogradDtype_t dtype, const char* name) {
  switch (dtype) {
    case RETROGRAD_F32:
      return DType::kF32;
    case RETROGRAD_F16:
      return DType::kF16;
    case RETROGRAD_BF16:
      return DType::kBF16;
    case RETROGRAD_HIF8:
      return DType::kHiF8;
    case RETROGRAD_E4M3:
      return DType::kE4M3;
  }
  return Status(Code::kBadDtype, "{}.dtype is {}, expected 0 to 4: F32, F16, BF16, HIF8 or E4M3", name,
                static_cast<int>(dtype));
}

Result<TensorView> view_of(const NamedTensor& named) {
  const auto& [tensor, name] = named;
  if (tensor == nullptr)
    return Status(Code::kNullArgument, "{} is null, expected a description of the tensor", name);
  RG_TRY(const DType dtype, dtype_of(tensor->dtype, name));
  if (tensor->rank < 0 || tensor->rank > Dims::kMaxRank)
    return Status(Code::kBadShape, "{}.rank is {}, expected 0 to {}", name, tensor->rank, Dims::kMaxRank);
  if (tensor->shape == nullptr && tensor->rank > 0)
    return Status(Code::kNullArgument, "{}.shape is null, expected {} sizes", name, tensor->rank);
  const auto rank = static_cast<size_t>(tensor->rank);
  TensorView view = problem::dense_view(dtype, Dims(std::span(tensor->shape, rank)));
  if (tensor->strides != nullptr) view.strides = Dims(std::span(tensor->strides, rank));
  return view;
}

Result<std::optional<TensorView>> optional_view(const NamedTensor& named) {
  if (named.tensor == nullptr) return std::optional<TensorView>();
  RG_TRY(TensorView view, view_of(named));
  return std::optional<TensorView>(std::move(view));
}

// `otherwise` for each axis when the list is empty; one number stands for all axes.
Result<std::vector<int64_t>> list_of(const retrogradInts_t& list, const char* name, size_t axes,
                                     int64_t otherwise) {
  constexpr size_t kMost = 2 * Dims::kMaxRank;
  if (list.count > kMost)
    return Status(Code::kInvalidArgument, "{} has {} entries, expected at most {}", name, list.count, kMost);
  if (list.count == 0) return std::vector<int64_t>(axes, otherwise);
  if (list.values == nullptr)
    return Status(Code::kNullArgument, "{}.values is null, expected {} numbers", name, list.count);
  if (list.count == 1) return std::vector<int64_t>(std::max<size_t>(axes, 1), list.values[0]);
  return std::vector<int64_t>(list.values, list.values + list.count);
}

Result<bool> flag_of(int32_t value, const char* name) {
  if (value == 0 || value == 1) return value == 1;
  return Status(Code::kInvalidArgument, "{} is {}, expected 0 or 1", name, value);
}

Status expect_absent(bool is_absent, const char* name, const char* operation) {
  if (is_absent) return Status::ok();
  return Status(Code::kInvalidArgument, "{} is given, and {} has none", name, operation);
}

// Numbers that only other operations look at have their defaults: one that does not is a mistake.
Status expect_no_convolution(const retrogradProblem_t& p, const char* operation) {
  RG_CHECK(expect_absent(p.dilation.count == 0, "dilation", operation));
  RG_CHECK(expect_absent(p.output_padding.count == 0, "output_padding", operation));
  RG_CHECK(expect_absent(p.transposed == 0, "transposed", operation));
  RG_CHECK(expect_absent(p.groups == 1, "groups", operation));
  return expect_absent(p.winograd == 0, "winograd", operation);
}
Status expect_no_pooling(const retrogradProblem_t& p, const char* operation) {
  RG_CHECK(expect_absent(p.kernel.count == 0, "kernel", operation));
  RG_CHECK(expect_absent(p.divisor_override == 0, "divisor_override", operation));
  RG_CHECK(expect_absent(p.spatial_rank == 0, "spatial_rank", operation));
  RG_CHECK(expect_absent(p.ceil_mode == 0, "ceil_mode", operation));
  return expect_absent(p.count_include_pad == 1, "count_include_pad", operation);
}

// A forward problem has an output and may have a bias, a backward one has gradients.
Status expect_direction(const retrogradProblem_t& p, bool forward) {
  const char* const operation = forward ? "a forward operation" : "a backward operation";
  const NamedTensor backward_only[] = {{p.grad_output, "grad_output"},
                                       {p.grad_input, "grad_input"},
                                       {p.grad_weight, "grad_weight"},
                                       {p.grad_bias, "grad_bias"}},
                    forward_only[] = {{p.output, "output"}, {p.bias, "bias"}};
  for (const auto& [tensor, name] : forward ? std::span<const NamedTensor>(backward_only) : forward_only)
    RG_CHECK(expect_absent(tensor == nullptr, name, operation));
  return Status::ok();
}

// The gradient of the output, or the output itself, which has its place in a forward request.
NamedTensor y_of(const retrogradProblem_t& p, bool forward) {
  return forward ? NamedTensor{p.output, "output"} : NamedTensor{p.grad_output, "grad_output"};
}

// The axes that the arrays of attributes have room for.
size_t attribute_axes(const TensorView& input) {
  return static_cast<size_t>(std::clamp(input.shape.rank() - 2, 0, 3));
}

Result<problem::Request> conv_request(const retrogradProblem_t& p, bool forward) {
  RG_CHECK(expect_no_pooling(p, "a convolution"));
  problem::ConvRequest request;
  request.forward = forward;
  request.names.grad_output = y_of(p, forward).name;
  request.rules.asymmetric_any_rank = true;
  request.math.hf32_mantissa_bits = settings().hf32_mantissa_bits;
  RG_TRY(request.grad_output, view_of(y_of(p, forward)));
  RG_TRY(request.input, view_of({p.input, "input"}));
  RG_TRY(request.weight, view_of({p.weight, "weight"}));
  RG_TRY(request.bias, optional_view({p.bias, "bias"}));
  RG_TRY(request.grad_input, optional_view({p.grad_input, "grad_input"}));
  RG_TRY(request.grad_weight, optional_view({p.grad_weight, "grad_weight"}));
  RG_TRY(request.grad_bias, optional_view({p.grad_bias, "grad_bias"}));
  const size_t axes = attribute_axes(request.input);
  RG_TRY(request.stride, list_of(p.stride, "stride", axes, 1));
  RG_TRY(request.padding, list_of(p.padding, "padding", axes, 0));
  RG_TRY(request.dilation, list_of(p.dilation, "dilation", axes, 1));
  RG_TRY(request.output_padding, list_of(p.output_padding, "output_padding", axes, 0));
  RG_TRY(request.transposed, flag_of(p.transposed, "transposed"));
  RG_TRY(const bool winograd, flag_of(p.winograd, "winograd"));
  request.math.winograd = winograd || settings().winograd;
  request.groups = p.groups;
  request.math.mode = p.math;
  return problem::Request(std::move(request));
}

Result<problem::Request> conv_tbc_request(const retrogradProblem_t& p, bool forward) {
  RG_CHECK(expect_no_convolution(p, "conv_tbc"));
  RG_CHECK(expect_no_pooling(p, "conv_tbc"));
  RG_CHECK(expect_absent(p.stride.count == 0, "stride", "conv_tbc"));
  problem::ConvTbcRequest request;
  request.forward = forward;
  request.names.grad_output = y_of(p, forward).name;
  request.math.hf32_mantissa_bits = settings().hf32_mantissa_bits;
  RG_TRY(request.grad_output, view_of(y_of(p, forward)));
  RG_TRY(request.input, view_of({p.input, "input"}));
  RG_TRY(request.weight, view_of({p.weight, "weight"}));
  const DType dtype = request.input.dtype;
  const int64_t c_out = request.weight.shape.rank() == 3 ? request.weight.shape[2] : 0;
  request.bias = problem::dense_view(dtype, {c_out});
  if (forward) {
    RG_TRY(request.bias, view_of({p.bias, "bias"}));
  }
  // What is not asked for is described all the same; its pass is left out of the plan.
  RG_TRY(const auto grad_input, optional_view({p.grad_input, "grad_input"}));
  RG_TRY(const auto grad_weight, optional_view({p.grad_weight, "grad_weight"}));
  RG_TRY(const auto grad_bias, optional_view({p.grad_bias, "grad_bias"}));
  request.grad_input = grad_input.value_or(problem::dense_view(dtype, request.input.shape));
  request.grad_weight = grad_weight.value_or(problem::dense_view(dtype, request.weight.shape));
  request.grad_bias = grad_bias.value_or(request.bias);
  RG_TRY(const auto pad, list_of(p.padding, "padding", 1, 0));
  if (pad.size() != 1)
    return Status(Code::kInvalidArgument, "padding has {} entries, expected 1 for conv_tbc", pad.size());
  request.pad = pad[0];
  request.math.mode = p.math;
  return problem::Request(std::move(request));
}

Result<problem::Request> avgpool_request(const retrogradProblem_t& p, bool forward) {
  RG_CHECK(expect_no_convolution(p, "pooling"));
  RG_CHECK(expect_absent(p.math == RETROGRAD_MATH_KEEP, "math", "pooling"));
  RG_CHECK(expect_absent(p.weight == nullptr, "weight", "pooling"));
  RG_CHECK(expect_absent(p.grad_weight == nullptr, "grad_weight", "pooling"));
  RG_CHECK(expect_absent(p.grad_bias == nullptr, "grad_bias", "pooling"));
  RG_CHECK(expect_absent(p.bias == nullptr, "bias", "pooling"));
  problem::AvgPoolRequest request;
  request.forward = forward;
  request.names.grad_output = y_of(p, forward).name;
  RG_TRY(request.grad_output, view_of(y_of(p, forward)));
  RG_TRY(request.input, view_of({p.input, "input"}));
  if (!forward) {
    RG_TRY(request.grad_input, view_of({p.grad_input, "grad_input"}));
  }
  if (p.spatial_rank < 0 || p.spatial_rank > 3)
    return Status(Code::kInvalidArgument, "spatial_rank is {}, expected 0 to 3", p.spatial_rank);
  request.spatial_rank = p.spatial_rank;
  if (p.kernel.count == 0)
    return Status(Code::kInvalidArgument, "kernel is empty, expected one size, or one for each axis");
  RG_TRY(request.kernel, list_of(p.kernel, "kernel", 1, 1));
  if (p.stride.count > 0) {
    RG_TRY(request.stride, list_of(p.stride, "stride", 1, 1));
  }
  RG_TRY(request.padding, list_of(p.padding, "padding", 1, 0));
  RG_TRY(request.ceil_mode, flag_of(p.ceil_mode, "ceil_mode"));
  RG_TRY(request.count_include_pad, flag_of(p.count_include_pad, "count_include_pad"));
  request.divisor_override = p.divisor_override;
  return problem::Request(std::move(request));
}

}  // namespace

bool is_problem_size(size_t size) {
  constexpr size_t kMostBytes = 4096;
  return size == kFirstProblemSize || (size >= sizeof(retrogradProblem_t) && size <= kMostBytes);
}

Result<retrogradProblem_t> read_problem(const retrogradProblem_t* problem) {
  if (problem == nullptr) return Status(Code::kNullArgument, "problem is null");
  const size_t size = problem->struct_size;
  if (!is_problem_size(size))
    return Status(Code::kInvalidArgument,
                  "problem.struct_size is {}, expected sizeof(retrogradProblem_t), which is {}: "
                  "retrogradInitProblem sets it",
                  size, sizeof(retrogradProblem_t));
  // A caller of a later version may have fields that we do not know: they must say nothing.
  const auto* const bytes = reinterpret_cast<const unsigned char*>(problem);
  if (size > sizeof(retrogradProblem_t) && std::any_of(bytes + sizeof(retrogradProblem_t), bytes + size,
                                                       [](unsigned char byte) { return byte != 0; }))
    return Status(Code::kInvalidArgument,
                  "problem has fields of a later version of the library that are not 0");
  retrogradProblem_t copy{};
  std::memcpy(&copy, problem, std::min(size, sizeof copy));
  return copy;
}

Result<problem::Request> to_request(const retrogradProblem_t& problem) {
  const bool forward = problem.operation >= RETROGRAD_CONV;
  if (problem.operation < 0 || problem.operation > RETROGRAD_AVG_POOL)
    return Status(Code::kInvalidArgument, "operation is {}, expected 0 to {}",
                  static_cast<int>(problem.operation), int{RETROGRAD_AVG_POOL});
  RG_CHECK(expect_direction(problem, forward));
  switch (problem.operation) {
    case RETROGRAD_CONV_BACKWARD:
    case RETROGRAD_CONV:
      return conv_request(problem, forward);
    case RETROGRAD_CONV_TBC_BACKWARD:
    case RETROGRAD_CONV_TBC:
      return conv_tbc_request(problem, forward);
    default:
      return avgpool_request(problem, forward);
  }
}

Result<runtime::Device*> device_of(const retrogradProblem_t& problem) {
  const NamedTensor all[] = {{problem.grad_output, "grad_output"}, {problem.input, "input"},
                             {problem.weight, "weight"},           {problem.grad_input, "grad_input"},
                             {problem.grad_weight, "grad_weight"}, {problem.grad_bias, "grad_bias"},
                             {problem.output, "output"},           {problem.bias, "bias"}};
  const NamedTensor* first = nullptr;
  for (const NamedTensor& each : all) {
    if (each.tensor == nullptr) continue;
    if (first == nullptr) first = &each;
    const retrogradDevice_t &a = first->tensor->device, &b = each.tensor->device;
    if (a.type != b.type || a.index != b.index)
      return Status(Code::kWrongDevice, "{} is on {}, expected {}: the device of {}", each.name, label_of(b),
                    label_of(a), first->name);
  }
  if (first == nullptr) return Status(Code::kNullArgument, "problem has no tensors");
  return find_device(first->tensor->device, fmt::format("{}.device", first->name).c_str());
}

retrogradDtype_t dtype_number(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return RETROGRAD_F16;
    case DType::kBF16:
      return RETROGRAD_BF16;
    case DType::kHiF8:
      return RETROGRAD_HIF8;
    case DType::kE4M3:
      return RETROGRAD_E4M3;
    case DType::kF32:
      break;
  }
  return RETROGRAD_F32;
}

void apply_settings(problem::Request& request) {
  const int bits = settings().hf32_mantissa_bits;
  if (auto* const conv = std::get_if<problem::ConvRequest>(&request)) {
    conv->math.hf32_mantissa_bits = bits;
    conv->math.winograd |= settings().winograd;
  }
  if (auto* const tbc = std::get_if<problem::ConvTbcRequest>(&request)) tbc->math.hf32_mantissa_bits = bits;
}

}  // namespace retrograd::api::own
