// SPDX-License-Identifier: Apache-2.0
// 1x1 convolutions of planes in 16-bit types, read and written where they lie.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/row_operand.h"
#include "engines/cuda/layout/aligned_copies.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense/pointwise.h"
#include "kernels/cuda/dense_weight/weight_parts.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::PointwisePlan;
using kernels::cuda::Result;
using kernels::cuda::RowType;
using kernels::cuda::WeightResults;

constexpr int64_t kFewestChannels = 8;  // of a group: fewer leave most of a tile empty

Result written_by(const ConvPass& pass) {
  return is_forward(pass)       ? Result::kForward
         : is_grad_weight(pass) ? Result::kGradWeight
                                : Result::kGradInput;
}

bool plan_of(const ConvPass& pass, PointwisePlan* plan) {
  return kernels::cuda::plan_pointwise(shape_of(pass), written_by(pass), pass.x.dtype, plan);
}

class PointwiseStep final : public Step {
 public:
  explicit PointwiseStep(const ConvPass& pass) : pass_(pass) { plan_of(pass, &plan_); }
  WantsAligned wants_aligned() const {
    if (plan_.pieces) return {.x = false, .y = false, .w = false};
    return {.x = pass_.kind != ConvPassKind::kGradInput,
            .y = pass_.kind != ConvPassKind::kForward,
            .w = pass_.kind != ConvPassKind::kGradWeight};
  }
  size_t workspace_bytes() const override {
    if (pass_.kind != ConvPassKind::kGradWeight || plan_.results == WeightResults::kInPlace) return 0;
    const int64_t sums = plan_.parts * plan_.walk.groups * plan_.walk.rows * plan_.walk.filled;
    return static_cast<size_t>(sums) * (plan_.results == WeightResults::kFilter ? 2 : sizeof(float));
  }
  std::string describe() const override {
    return fmt::format("tiles {}, planes in {}{}", name_of(plan_.cut), plan_.pieces ? "pieces" : "place",
                       plan_.parts > 1 ? fmt::format(", {} parts", plan_.parts) : "");
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const Conv conv = bind(pass_, bindings);
    const auto stream = stream_of(context);
    if (!are_aligned(conv) || !multiply(conv, workspace, stream)) run_directly(pass_.kind, conv, stream);
  }

 private:
  bool are_aligned(const Conv& conv) const {
    const WantsAligned wants = wants_aligned();
    return (!wants.x || kernels::cuda::is_aligned(conv.x.data)) &&
           (!wants.y || kernels::cuda::is_aligned(conv.y.data)) &&
           (!wants.w || kernels::cuda::is_aligned(conv.w.data));
  }
  bool multiply(const Conv& conv, std::byte* workspace, Stream stream) const {
    const RowType type = half_row_type(pass_);
    auto* const parts = reinterpret_cast<float*>(workspace);
    if (!kernels::cuda::pointwise(plan_, conv, written_by(pass_), type, workspace, parts, stream))
      return false;
    if (pass_.kind != ConvPassKind::kGradWeight) return true;
    const int64_t filled = plan_.walk.filled;
    if (plan_.results == WeightResults::kFilter)
      kernels::cuda::take_filter(conv, conv.y_channels, filled, type, workspace, stream);
    if (plan_.results == WeightResults::kParts)
      kernels::cuda::add_weight_parts(
          {conv, kernels::cuda::WeightRepair::kNone, false, filled, parts, plan_.parts}, stream);
    return true;
  }
  ConvPass pass_;
  PointwisePlan plan_{};
};

bool is_pointwise(const ConvPass& p) {
  return std::all_of(p.axes.begin(), p.axes.end(), [](const Window& w) {
    return w.kernel == 1 && w.stride == 1 && w.pad_lo == 0 && w.x == w.y;
  });
}

// Places side by side; images and channels anywhere.
bool has_planes(const PassTensor& tensor, const Sizes5& sizes) {
  int64_t stride = 1;
  for (size_t i = 5; i-- > 2; stride *= sizes[i])
    if (sizes[i] != 1 && tensor.strides[i] != stride) return false;
  return true;
}

Support supports(const ConvPass& conv, const Machine& machine) {
  if (!is_pointwise(conv)) return Support::no("needs a 1x1 kernel, stride 1 and no padding");
  if (!has_warpgroups(machine)) return Support::no("needs a GPU of compute capability 9.0");
  const DType type = conv.x.dtype;
  const bool weights = is_grad_weight(conv);
  if (!is_half_type(type) || conv.y.dtype != type || (!weights && conv.w.dtype != type))
    return Support::no("needs f16 or bf16 for all operands");
  if (is_rounded(conv, type)) return Support::no("does not round operands");
  if (std::min(conv.x_channels_per_group(), conv.y_channels_per_group()) < kFewestChannels)
    return Support::no("needs {} channels a group of both sides", kFewestChannels);
  const Sizes5 x = x_sizes(conv), y = y_sizes(conv);
  if (!fits_31_bits(x) || !fits_31_bits(y) || !fits_31_bits(w_sizes(conv)))
    return Support::no("needs 1 to 2^31 - 1 elements");
  const Conv shape = shape_of(conv);
  const int64_t places = x[2] * x[3] * x[4];
  if (!has_planes(conv.x, x) || !has_planes(conv.y, y) ||
      !kernels::cuda::has_pieces(shape.x, x[0], x[1], places) ||
      !kernels::cuda::has_pieces(shape.y, y[0], y[1], places))
    return Support::no("needs places side by side, and no channel or image twice");
  if (!weights && !kernels::cuda::has_weight_pieces(shape))
    return Support::no("needs rows of weights of x channels side by side");
  PointwisePlan plan{};
  if (!plan_of(conv, &plan)) return Support::no("more tiles than a launch has blocks");
  return Support::yes();
}

// The plan's own time, in which parts are added.
Effort effort(const ConvPass& conv, const Machine& machine) {
  PointwisePlan plan{};
  plan_of(conv, &plan);
  const bool second = is_grad_weight(conv) && plan.results != WeightResults::kInPlace;
  return paced(conv, plan.microseconds, second ? 2 : 1, machine);
}

}  // namespace

const Candidate& pointwise_planes() {
  static const ConvCandidate instance(
      {"cuda.pointwise_planes", "convolutions only", supports, effort, make_aligned_step<PointwiseStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
