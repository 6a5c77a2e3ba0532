// SPDX-License-Identifier: Apache-2.0
// grad_weight of few channels and any window in two launches.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/effort.h"
#include "engines/cuda/few_channels/narrow_pass.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/few_channels/group_blocks.h"
#include "kernels/cuda/few_channels/narrow_blocks.h"

namespace retrograd::engines::cuda {
namespace {

using problem::ConvPass;

constexpr double kPacedProcessors = 132;  // which the plan's time is for

class BlockWeightsStep final : public Step {
 public:
  explicit BlockWeightsStep(const ConvPass& pass)
      : pass_(pass), last_(is_last(pass)), parts_(kernels::cuda::block_weight_parts(shape_of(pass))) {}
  size_t workspace_bytes() const override { return static_cast<size_t>(parts_) * part_bytes(pass_); }
  std::string describe() const override { return describe_narrow(last_, parts_); }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::block_grad_weight(bind(shape_of(pass_), pass_, bindings), last_,
                                     reinterpret_cast<float*>(workspace), stream_of(context));
  }

 private:
  ConvPass pass_;
  bool last_;
  int64_t parts_;
};

class BlockWeightsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.block_weights"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind != problem::ConvPassKind::kGradWeight)
      return Support::no("grad_weight only");
    if (const Support narrow = is_narrow_pass(conv); !narrow.accepted()) return narrow;
    if (conv->x.dtype == DType::kF32) return Support::no("needs f16 or bf16");
    if (conv->groups > 1 && std::min(conv->x_channels_per_group(), conv->y_channels_per_group()) == 1)
      return Support::no("one channel a group: tiles would be almost empty");
    if (kernels::cuda::has_group_grad_weight(shape_of(*conv), is_last(*conv)))
      return Support::no("groups of up to 16 channels and 3x3: narrow_blocks reads ahead");
    if (!kernels::cuda::has_block_grad_weight(shape_of(*conv)))
      return Support::no("needs at most 64 x channels a group, 72 taps, and rows that fit into 96 KiB");
    return Support::yes();
  }
  // The plan's own time, in which parts are added.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    const auto& conv = std::get<ConvPass>(pass);
    Times times(pass, machine);
    times.add(kernels::cuda::block_weight_microseconds(shape_of(conv), is_last(conv)) * kPacedProcessors /
                  processors_of(machine),
              2, bytes_of(conv));
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<BlockWeightsStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& block_weights() {
  static const BlockWeightsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
