// SPDX-License-Identifier: Apache-2.0
// grad_weight of few x channels a group in FP32 without tensor cores: two launches.
#include "kernels/cuda/few_channels/narrow_tiles.h"

#include <fmt/format.h>

#include "engines/cuda/few_channels/narrow_pass.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/shapes.h"

namespace retrograd::engines::cuda {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;

constexpr int64_t kMostChannels = 16;  // of x, a group's

class NarrowTilesStep final : public Step {
 public:
  explicit NarrowTilesStep(const ConvPass& pass)
      : pass_(pass),
        last_(is_last(pass)),
        parts_(kernels::cuda::narrow_weight_parts(shape_of(pass), last_)) {}
  size_t workspace_bytes() const override { return static_cast<size_t>(parts_) * part_bytes(pass_); }
  std::string describe() const override { return "narrow_tiles, " + describe_narrow(last_, parts_); }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::narrow_tiles_grad_weight(bind(shape_of(pass_), pass_, bindings), last_,
                                            reinterpret_cast<float*>(workspace), stream_of(context));
  }

 private:
  ConvPass pass_;
  bool last_;
  int64_t parts_;
};

class NarrowTilesCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.narrow_tiles"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (const Support narrow = is_narrow_pass(conv); !narrow.accepted()) return narrow;
    if (conv->kind != ConvPassKind::kGradWeight) return Support::no("grad_weight only");
    if (conv->groups == 1) return Support::no("without groups row_products fills its tiles");
    if (conv->x.dtype != DType::kF32) return Support::no("needs f32");
    if (conv->x_channels_per_group() > kMostChannels)
      return Support::no(fmt::format("{} x channels a group, at most {} are taken",
                                     conv->x_channels_per_group(), kMostChannels));
    if (conv->axes[1].dilation != 1 || conv->axes[2].dilation != 1) return Support::no("needs dilation 1");
    return kernels::cuda::has_narrow_grad_weight(shape_of(*conv))
               ? Support::yes()
               : Support::no("needs 4, 8, 12 or 16 x channels a group, three columns, stride 1 or 2");
  }
  Effort effort(const problem::Pass& pass, const Machine& /*machine*/) const override {
    Effort effort = effort_of(pass);
    effort.launches = 2;
    return effort;
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<NarrowTilesStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& narrow_tiles() {
  static const NarrowTilesCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
