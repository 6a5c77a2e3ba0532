// SPDX-License-Identifier: Apache-2.0
// Collects problems, and derives those of one type or one gradient.
#include "tools/problems/problems.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/settings.h"
#include "problem/problem_text.h"
#include "tools/problems/row_pattern.h"
#include "tools/problems/shape_table.h"

namespace retrograd::tools {
namespace {

using problem::AvgPoolRequest;
using problem::ConvRequest;
using problem::ConvTbcRequest;
using problem::Request;
using problem::TensorView;

std::string shown(const std::string& text) {
  constexpr size_t kMostShown = 80;
  return text.size() <= kMostShown ? text : text.substr(0, kMostShown) + "...";
}

Status read_file(const std::string& file, const RowPattern* rows, std::vector<NamedProblem>& out) {
  RG_TRY(const auto lines, read_shapes(file));
  size_t kept = 0;
  for (const ShapeLine& line : lines) {
    if (rows != nullptr && !rows->found_in(line.name)) continue;
    ++kept;
    auto request = problem::parse_request(line.text);
    if (!request.is_ok())
      return {request.status().code(),
              fmt::format("{}:{}: {}", file, line.number, request.status().message())};
    out.push_back({line.name, std::move(request).value()});
  }
  if (kept == 0)
    return {Code::kInvalidArgument,
            fmt::format("{} has no {}", file, rows == nullptr ? "problem" : "row whose name --rows matches")};
  return Status::ok();
}

DType wide(DType dtype) { return is_8bit(dtype) ? DType::kF32 : dtype; }

void set_dtype(ConvRequest& r, DType dtype) {
  r.input.dtype = r.weight.dtype = r.grad_output.dtype = dtype;
  if (r.grad_input) r.grad_input->dtype = dtype;
  if (r.grad_weight) r.grad_weight->dtype = dtype == DType::kE4M3 ? DType::kF32 : dtype;
  if (r.grad_bias) r.grad_bias->dtype = wide(dtype);
  if (r.bias) r.bias->dtype = dtype;
}
void set_dtype(ConvTbcRequest& r, DType dtype) {
  r.input.dtype = r.weight.dtype = r.grad_output.dtype = r.bias.dtype = dtype;
  r.grad_input.dtype = r.grad_weight.dtype = r.grad_bias.dtype = dtype;
}
void set_dtype(AvgPoolRequest& r, DType dtype) {
  r.input.dtype = r.grad_output.dtype = r.grad_input.dtype = dtype;
}

// Row-major, or with the channels moving fastest and the other axes as before. Nobody has judged the sizes
// yet: impossible ones stay as they are.
void lay_out(TensorView& view, int channels, bool channels_last) {
  if (channels < 0 || channels >= view.shape.rank() || !problem::element_count(view.shape)) return;
  int64_t step = channels_last ? view.shape[channels] : 1;
  for (int axis = view.shape.rank() - 1; axis >= 0; --axis) {
    if (channels_last && axis == channels) {
      view.strides[axis] = 1;
      continue;
    }
    view.strides[axis] = step;
    step *= view.shape[axis];
  }
}

}  // namespace

Result<std::vector<NamedProblem>> collect(const ProblemSource& source) {
  std::vector<NamedProblem> all;
  for (const std::string& text : source.texts) {
    RG_TRY(auto request, problem::parse_request(text));
    all.push_back({"", std::move(request)});
  }
  std::optional<RowPattern> rows;
  if (!source.rows.empty()) {
    auto parsed = RowPattern::parse(source.rows);
    if (!parsed.is_ok())
      return Status(Code::kInvalidArgument, fmt::format("--rows: '{}' is no pattern: {}", shown(source.rows),
                                                        parsed.status().message()));
    rows = std::move(parsed).value();
  }
  for (const std::string& file : source.files) RG_CHECK(read_file(file, rows ? &*rows : nullptr, all));
  if (source.math_mode)
    for (NamedProblem& each : all) each.request = with_math_mode(std::move(each.request), *source.math_mode);
  RG_TRY(const Layout layout, layout_from_name(source.layout));
  for (NamedProblem& each : all) each.request = with_layout(std::move(each.request), layout);
  for (NamedProblem& each : all) apply_settings(each.request);
  if (source.dtype.empty()) return all;
  const auto dtype = dtype_from_name(source.dtype);
  if (!dtype)
    return Status(Code::kInvalidArgument,
                  fmt::format("--dtype: '{}' is not one of f32, f16, bf16, hif8, e4m3", source.dtype));
  for (NamedProblem& each : all) each.request = with_dtype(std::move(each.request), *dtype);
  return all;
}

void apply_settings(Request& request) {
  // Without rules, mode 0 is aclnn's: exact.
  auto* conv = std::get_if<ConvRequest>(&request);
  if (conv != nullptr && (conv->math.mode == 1 || conv->rules.one_dtype))
    conv->math.winograd |= settings().winograd;
}

Request with_dtype(Request request, DType dtype) {
  std::visit([&](auto& r) { set_dtype(r, dtype); }, request);
  return request;
}

Request with_math_mode(Request request, int mode) {
  if (auto* conv = std::get_if<ConvRequest>(&request)) conv->math.mode = mode;
  if (auto* tbc = std::get_if<ConvTbcRequest>(&request)) tbc->math.mode = mode;
  return request;
}

Result<Layout> layout_from_name(const std::string& name) {
  if (name.empty()) return Layout::kAsGiven;
  if (name == "plain") return Layout::kPlain;
  if (name == "channels-last") return Layout::kChannelsLast;
  return Status(Code::kInvalidArgument,
                fmt::format("--layout: '{}' is not one of plain, channels-last", name));
}

Request with_layout(Request request, Layout layout) {
  if (layout == Layout::kAsGiven) return request;
  const bool last = layout == Layout::kChannelsLast;
  if (auto* conv = std::get_if<ConvRequest>(&request)) {
    for (TensorView* view : {&conv->input, &conv->weight, &conv->grad_output}) lay_out(*view, 1, last);
    for (auto* view : {&conv->grad_input, &conv->grad_weight})
      if (*view) lay_out(**view, 1, last);
  }
  if (auto* pool = std::get_if<AvgPoolRequest>(&request)) {
    const int rank = pool->input.shape.rank();
    const int channels = rank - 1 - (pool->spatial_rank > 0 ? pool->spatial_rank : rank - 2);
    for (TensorView* view : {&pool->input, &pool->grad_output, &pool->grad_input})
      lay_out(*view, channels, last);
  }
  return request;
}

std::string_view name_of(Gradient gradient) {
  switch (gradient) {
    case Gradient::kInput:
      return "i";
    case Gradient::kWeight:
      return "w";
    case Gradient::kBias:
      return "b";
    case Gradient::kOutput:
      return "f";
    case Gradient::kAll:
      break;
  }
  return "all";
}

std::optional<Gradient> gradient_from_name(std::string_view name) {
  for (Gradient each :
       {Gradient::kInput, Gradient::kWeight, Gradient::kBias, Gradient::kAll, Gradient::kOutput})
    if (name == name_of(each)) return each;
  return std::nullopt;
}

Result<std::vector<Gradient>> gradients_of(const std::vector<std::string>& passes) {
  std::vector<Gradient> gradients;
  for (const std::string& pass : passes) {
    const auto gradient = gradient_from_name(pass);
    if (!gradient || gradient == Gradient::kOutput)
      return Status(Code::kInvalidArgument, fmt::format("--passes: '{}' is not one of i, w, b, all", pass));
    gradients.push_back(*gradient);
  }
  return gradients;
}

std::optional<Request> with_gradient(const Request& request, Gradient gradient) {
  if (is_forward(request) != (gradient == Gradient::kOutput)) return std::nullopt;
  if (gradient == Gradient::kAll || gradient == Gradient::kOutput) return request;
  if (const auto* conv = std::get_if<ConvRequest>(&request)) {
    ConvRequest one = *conv;
    if (gradient != Gradient::kInput) one.grad_input.reset();
    if (gradient != Gradient::kWeight) one.grad_weight.reset();
    if (gradient != Gradient::kBias) one.grad_bias.reset();
    if (!one.grad_input && !one.grad_weight && !one.grad_bias) return std::nullopt;
    return Request(std::move(one));
  }
  // Pooling has one gradient; the three of conv_tbc come together.
  const bool pool = std::holds_alternative<AvgPoolRequest>(request);
  return pool && gradient == Gradient::kInput ? std::optional(request) : std::nullopt;
}

}  // namespace retrograd::tools
