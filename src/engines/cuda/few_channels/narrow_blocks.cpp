// SPDX-License-Identifier: Apache-2.0
// Groups of up to 16 channels, and stems, in 16-bit types on tensor cores. grad_input takes one launch,
// grad_weight two.
#include "kernels/cuda/few_channels/narrow_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/direct.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/few_channels/narrow_pass.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layout/aligned_copies.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/alignment.h"

namespace retrograd::engines::cuda {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;

bool has_group_kernel(const ConvPass& pass) {
  const kernels::cuda::Conv shape = shape_of(pass);
  return pass.kind == ConvPassKind::kGradInput ? kernels::cuda::has_group_grad_input(shape, is_last(pass))
                                               : kernels::cuda::has_group_grad_weight(shape, is_last(pass));
}

// Kernels for groups need aligned tensors: others take grad_input where these are not, copies are made for
// grad_weight.
class NarrowBlocksStep final : public Step {
 public:
  explicit NarrowBlocksStep(const ConvPass& pass)
      : pass_(pass), last_(is_last(pass)), grouped_(has_group_kernel(pass)) {
    if (pass.kind == ConvPassKind::kGradInput) return;
    parts_ = grouped_ ? kernels::cuda::group_weight_parts(shape_of(pass), last_)
                      : kernels::cuda::stem_weight_parts(shape_of(pass));
  }
  WantsAligned wants_aligned() const {
    const bool wants = grouped_ && pass_.kind == ConvPassKind::kGradWeight;
    return {.x = wants, .y = wants, .w = false};
  }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(parts_) *
           (grouped_ ? static_cast<size_t>(kernels::cuda::group_part_floats(shape_of(pass_))) * sizeof(float)
                     : part_bytes(pass_));
  }
  std::string describe() const override {
    const bool gather = pass_.kind == ConvPassKind::kGradInput;
    const char* const name = gather     ? grouped_ ? "group_gather; unaligned: block_gather" : "block_gather"
                             : grouped_ ? "group_weight"
                                        : "stem_weight";
    return fmt::format("{}, {}", name, describe_narrow(last_, parts_));
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Conv conv = bind(pass_, bindings);
    const bool grouped = grouped_ && are_aligned(bindings);
    if (pass_.kind == ConvPassKind::kGradInput)
      return grouped ? kernels::cuda::group_grad_input(conv, last_, stream_of(context))
                     : kernels::cuda::block_grad_input(conv, last_, stream_of(context));
    auto* const sums = reinterpret_cast<float*>(workspace);
    if (!grouped_) return kernels::cuda::stem_grad_weight(conv, last_, sums, stream_of(context));
    grouped ? kernels::cuda::group_grad_weight(conv, last_, sums, stream_of(context))
            : run_directly(pass_.kind, conv, stream_of(context));
  }

 private:
  bool are_aligned(const Bindings& bindings) const {
    return kernels::cuda::is_aligned(bindings[pass_.x.operand]) &&
           kernels::cuda::is_aligned(bindings[pass_.y.operand]);
  }

  ConvPass pass_;
  bool last_, grouped_;
  int64_t parts_ = 0;
};

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support narrow = is_narrow_pass(conv); !narrow.accepted()) return narrow;
  if (conv.x.dtype == DType::kF32) return Support::no("needs f16 or bf16");
  if (conv.groups > 1 && std::min(conv.x_channels_per_group(), conv.y_channels_per_group()) == 1)
    return Support::no("one channel a group: tiles would be almost empty");
  if (is_last(conv) && conv.groups > 1 && conv.x_channels_per_group() >= 8 && !has_group_kernel(conv))
    return Support::no("channels last with 8 or more channels a group");
  const kernels::cuda::Conv shape = shape_of(conv);
  if (conv.kind == ConvPassKind::kGradInput)
    return kernels::cuda::has_block_grad_input(shape) ? Support::yes()
                                                      : Support::no(
                                                            "needs at most 16 results of a place and a "
                                                            "small window");
  return has_group_kernel(conv) || kernels::cuda::has_stem_grad_weight(shape)
             ? Support::yes()
             : Support::no("needs groups of up to 16 channels and 3x3, or a stem with an even stride");
}

Effort effort(const ConvPass& conv, const Machine& machine) {
  constexpr double kOfPeak = 0.044;
  const bool gather = conv.kind == ConvPassKind::kGradInput;
  const double microseconds =
      gather && !has_group_kernel(conv)
          ? kernels::cuda::block_gather_microseconds(shape_of(conv), is_last(conv)) * kPacedProcessors /
                processors_of(machine)
          : effort_of(conv).operations / (kOfPeak * std::max(machine.gpu.f16_tflops, 1e-3) * 1e6);
  Times times(conv, machine);
  times.add(microseconds, gather ? 1 : 2, 1.5 * bytes_of(conv));
  return times.effort();
}

}  // namespace

const Candidate& narrow_blocks() {
  static const ConvCandidate instance({"cuda.narrow_blocks", "grad_input and grad_weight only", supports,
                                       effort, make_aligned_step<NarrowBlocksStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
