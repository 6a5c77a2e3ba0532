// SPDX-License-Identifier: Apache-2.0
// Sources into planes, another engine's step, the result back.
#include <fmt/format.h>

#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/direct.h"
#include "kernels/cuda/layout/results.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::is_aligned;
using kernels::cuda::Result;
using kernels::cuda::RowType;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

problem::Strides5 plane_strides(const Sizes5& sizes) {
  problem::Strides5 strides{};
  int64_t stride = 1;
  for (size_t axis = 5; axis-- > 0;) {
    strides[axis] = stride;
    stride *= sizes[axis];
  }
  return strides;
}

ConvPass in_planes(const ConvPass& pass) {
  ConvPass copy = pass;
  copy.x.strides = plane_strides(x_sizes(pass));
  copy.y.strides = plane_strides(y_sizes(pass));
  return copy;
}

const Candidate* engine_for(const ConvPass& planes, const Machine& machine) {
  for (const Candidate* candidate :
       {&depthwise_small(), &depthwise_whole(), &depthwise_bands(), &depthwise_rows(), &depthwise_tiles()})
    if (candidate->supports(planes, machine).accepted()) return candidate;
  return nullptr;
}

size_t bytes_of(const PassTensor& tensor, const Sizes5& sizes) {
  int64_t elements = 1;
  for (int64_t size : sizes) elements *= size;
  return (static_cast<size_t>(elements) * size_of(tensor.dtype) + 255) / 256 * 256;
}

class TransposedStep final : public Step {
 public:
  TransposedStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        planes_(in_planes(pass)),
        type_(pass.x.dtype == DType::kF32   ? RowType::kF32
              : pass.x.dtype == DType::kF16 ? RowType::kF16
                                            : RowType::kBF16),
        inner_(engine_for(planes_, machine)->make_step(planes_, machine)) {}
  size_t workspace_bytes() const override { return x_bytes() + y_bytes() + inner_->workspace_bytes(); }
  std::string describe() const override { return fmt::format("copies in planes, {}", inner_->describe()); }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto stream = stream_of(context);
    std::byte* const at_x = workspace;
    std::byte* const at_y = at_x + x_bytes();
    Bindings inner = bindings;
    inner.set(pass_.x.operand, at_x);
    inner.set(pass_.y.operand, at_y);
    const kernels::cuda::Conv given = bind(shape_of(pass_), pass_, bindings);
    const kernels::cuda::Conv copied = bind(shape_of(planes_), planes_, inner);
    if (!is_aligned(given.x.data) || !is_aligned(given.y.data)) return run_directly(given, stream);
    // Rows of channels are what channels-last tensors consist of.
    if (pass_.kind != ConvPassKind::kGradInput)
      kernels::cuda::take_rows(copied, Result::kGradInput, pass_.groups, type_, given.x.data, false, stream);
    if (pass_.kind != ConvPassKind::kForward)
      kernels::cuda::take_rows(copied, Result::kForward, pass_.groups, type_, given.y.data, false, stream);
    inner_->run(inner, at_y + y_bytes(), context);
    if (pass_.kind == ConvPassKind::kGradWeight) return;
    const bool is_x = pass_.kind == ConvPassKind::kGradInput;
    kernels::cuda::Rows rows{};
    rows.batch = given.batch;
    rows.groups = 1;
    rows.channels = given.groups;
    for (int i = 0; i < 3; ++i) rows.spatial[i] = is_x ? given.axes[i].x : given.axes[i].y;
    rows.source = is_x ? copied.x : copied.y;
    rows.rounding = OperandRounding::kNone;
    kernels::cuda::make_rows(rows, type_, is_x ? given.x.data : given.y.data, stream);
  }

 private:
  void run_directly(const kernels::cuda::Conv& conv, kernels::cuda::Stream stream) const {
    switch (pass_.kind) {
      case ConvPassKind::kForward:
        return kernels::cuda::direct_forward(conv, stream);
      case ConvPassKind::kGradInput:
        return kernels::cuda::direct_grad_input(conv, stream);
      case ConvPassKind::kGradWeight:
        return kernels::cuda::direct_grad_weight(conv, stream);
    }
  }
  size_t x_bytes() const { return bytes_of(pass_.x, x_sizes(pass_)); }
  size_t y_bytes() const { return bytes_of(pass_.y, y_sizes(pass_)); }

  ConvPass pass_, planes_;
  RowType type_;
  std::unique_ptr<const Step> inner_;
};

class TransposedCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.depthwise_transposed"; }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->groups != conv->x_channels || conv->groups != conv->y_channels)
      return Support::no("needs one channel a group on both sides");
    if (!fits_31_bits(x_sizes(*conv)) || !fits_31_bits(y_sizes(*conv)))
      return Support::no("needs 1 to 2^31 - 1 elements");
    if (conv->groups % 8 != 0) return Support::no("needs multiples of 8 channels");
    if (!is_channels_last(conv->x, x_sizes(*conv)) || !is_channels_last(conv->y, y_sizes(*conv)))
      return Support::no("needs channels-last x and y");
    if (engine_for(in_planes(*conv), machine) == nullptr)
      return Support::no("no engine takes it in planes either");
    return Support::yes();
  }
  // With a copy of x and of y.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    Effort effort = on_fp32_units(effort_of(pass), pass, machine);
    effort.launches = 3;
    return effort;
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return std::make_unique<TransposedStep>(std::get<ConvPass>(pass), machine);
  }
};

}  // namespace

const Candidate& depthwise_transposed() {
  static const TransposedCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
