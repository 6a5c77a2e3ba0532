// SPDX-License-Identifier: Apache-2.0
// Few x channels a group, and stems, in FP32 without tensor cores. grad_input takes one launch, grad_weight
// two.
#include "kernels/cuda/few_channels/narrow_tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/few_channels/narrow_pass.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"

namespace retrograd::engines::cuda {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;

constexpr int64_t kMostChannels = 16;  // of x, a group's

class NarrowTilesStep final : public Step {
 public:
  explicit NarrowTilesStep(const ConvPass& pass) : pass_(pass), last_(is_last(pass)) {
    if (pass.kind == ConvPassKind::kGradWeight)
      parts_ = kernels::cuda::narrow_weight_parts(shape_of(pass), last_);
  }
  size_t workspace_bytes() const override { return static_cast<size_t>(parts_) * part_bytes(pass_); }
  std::string describe() const override { return "narrow_tiles, " + describe_narrow(last_, parts_); }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Conv conv = bind(pass_, bindings);
    if (pass_.kind == ConvPassKind::kGradInput)
      return kernels::cuda::narrow_tiles_grad_input(conv, last_, stream_of(context));
    kernels::cuda::narrow_tiles_grad_weight(conv, last_, reinterpret_cast<float*>(workspace),
                                            stream_of(context));
  }

 private:
  ConvPass pass_;
  bool last_;
  int64_t parts_ = 0;
};

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support narrow = is_narrow_pass(conv); !narrow.accepted()) return narrow;
  if (conv.x.dtype != DType::kF32) return Support::no("needs f32");
  if (conv.x_channels_per_group() > kMostChannels)
    return Support::no(fmt::format("{} x channels a group, at most {} are taken", conv.x_channels_per_group(),
                                   kMostChannels));
  if (conv.axes[1].dilation != 1 || conv.axes[2].dilation != 1) return Support::no("needs dilation 1");
  const kernels::cuda::Conv shape = shape_of(conv);
  const bool taken = conv.kind == ConvPassKind::kGradInput ? kernels::cuda::has_narrow_grad_input(shape)
                                                           : kernels::cuda::has_narrow_grad_weight(shape);
  return taken ? Support::yes() : Support::no("no kernel for this window and these channels");
}

// grad_input adds up y channels one after another, however few places there are.
Effort effort(const ConvPass& conv, const Machine& /*machine*/) {
  constexpr double kChannel = 8e6;  // operations that take as long
  Effort effort = effort_of(conv);
  if (conv.kind == ConvPassKind::kGradWeight)
    effort.launches = 2;
  else
    effort.operations =
        std::max(effort.operations, kChannel * static_cast<double>(conv.y_channels_per_group()));
  return effort;
}

}  // namespace

const Candidate& narrow_tiles() {
  static const ConvCandidate instance(
      {"cuda.narrow_tiles", "grad_input and grad_weight only", supports, effort, make_step<NarrowTilesStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
