// SPDX-License-Identifier: Apache-2.0
// Few channels a group, and stems: of up to 16 channels in 16-bit types on tensor cores, of few x channels in
// FP32 without. grad_input takes one launch, grad_weight two.
#include "kernels/cuda/few_channels/narrow.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/candidate.h"
#include "engines/cuda/layout/aligned_copies.h"
#include "kernels/cuda/alignment.h"

namespace retrograd::engines::cuda {
namespace {

constexpr char kOthers[] = "grad_input and grad_weight only";
constexpr int64_t kMostChannels = 16;  // of x, a group's, in FP32

bool is_small(const Window& w) {
  constexpr int64_t kMost = 1 << 24;
  for (int64_t size : {w.x, w.y, w.kernel, w.stride, w.dilation, w.pad_lo})
    if (size < 0 || size >= kMost) return false;
  return (w.kernel - 1) * w.dilation < kMost && w.y * w.stride < kMost * 16;
}

// grad_input or grad_weight, one or two axes, x and y dense and of the same layout, FP32, FP16 or BF16
// throughout, no rounding of operands, no negative padding, sizes that 32-bit counts hold.
Support is_narrow_pass(const ConvPass& pass) {
  if (is_forward(pass)) return Support::no(kOthers);
  if (pass.bias) return Support::no("adds no bias");
  if (!is_wide_type(pass.x.dtype) || pass.x.dtype != pass.y.dtype ||
      (pass.kind == ConvPassKind::kGradInput && pass.w.dtype != pass.x.dtype))
    return Support::no("needs f32, f16 or bf16, all the same");
  if (pass.rounding != OperandRounding::kNone) return Support::no("does not round operands");
  const auto& [d, h, w] = pass.axes;
  if (d.x != 1 || d.y != 1 || d.kernel != 1 || d.pad_lo != 0) return Support::no("one or two axes only");
  if (!fits_31_bits(x_sizes(pass)) || !fits_31_bits(y_sizes(pass)) || !is_small(h) || !is_small(w) ||
      pass.batch > 65535 || pass.groups > 65535)
    return Support::no("needs 1 to 2^31 - 1 elements and no negative padding");
  if (!both_planes(pass) && !both_channels_last(pass))
    return Support::no("needs x and y dense, both row-major or both channels last");
  return Support::yes();
}

// For such a pass: whether channels are innermost. A layout that is both counts as planes.
bool is_last(const ConvPass& pass) { return !both_planes(pass); }

// Sums of all weights.
int64_t part_floats(const ConvPass& pass) {
  return pass.y_channels * pass.x_channels_per_group() * pass.axes[1].kernel * pass.axes[2].kernel;
}

// No parts: grad_input.
std::string describe_narrow(bool last, int64_t parts) {
  const char* const layout = last ? "channels last" : "planes";
  return parts == 0 ? layout : fmt::format("{}, {} parts", layout, parts);
}

// ---- tensor cores

bool has_group_kernel(const ConvPass& pass) {
  const Conv shape = shape_of(pass);
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
    const int64_t floats = grouped_ ? kernels::cuda::group_part_floats(shape_of(pass_)) : part_floats(pass_);
    return static_cast<size_t>(parts_ * floats) * sizeof(float);
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
    const Conv conv = bind(pass_, bindings);
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

Support takes_blocks(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support narrow = is_narrow_pass(conv); !narrow.accepted()) return narrow;
  if (conv.x.dtype == DType::kF32) return Support::no("needs f16 or bf16");
  if (conv.groups > 1 && std::min(conv.x_channels_per_group(), conv.y_channels_per_group()) == 1)
    return Support::no("one channel a group: tiles would be almost empty");
  if (is_last(conv) && conv.groups > 1 && conv.x_channels_per_group() >= 8 && !has_group_kernel(conv))
    return Support::no("channels last with 8 or more channels a group");
  const Conv shape = shape_of(conv);
  if (conv.kind == ConvPassKind::kGradInput)
    return kernels::cuda::has_block_grad_input(shape) ? Support::yes()
                                                      : Support::no(
                                                            "needs at most 16 results of a place and a "
                                                            "small window");
  return has_group_kernel(conv) || kernels::cuda::has_stem_grad_weight(shape)
             ? Support::yes()
             : Support::no("needs groups of up to 16 channels and 3x3, or a stem with an even stride");
}

Effort effort_of_blocks(const ConvPass& conv, const Machine& machine) {
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

// ---- FP32

struct NarrowTiles {
  struct Plan {
    bool last;
    int64_t parts;
  };
  static Plan plan(const ConvPass& pass) {
    const bool last = is_last(pass);
    return {last, is_grad_weight(pass) ? kernels::cuda::narrow_weight_parts(shape_of(pass), last) : 0};
  }
  static int64_t sums(const ConvPass& pass, const Plan& plan) { return plan.parts * part_floats(pass); }
  static std::string describe(const ConvPass& /*pass*/, const Plan& plan) {
    return "narrow_tiles, " + describe_narrow(plan.last, plan.parts);
  }
  static void launch(const ConvPass& pass, const Conv& conv, const Plan& plan, float* sums, Stream stream) {
    if (is_grad_weight(pass)) return kernels::cuda::narrow_tiles_grad_weight(conv, plan.last, sums, stream);
    kernels::cuda::narrow_tiles_grad_input(conv, plan.last, stream);
  }
};

Support takes_tiles(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support narrow = is_narrow_pass(conv); !narrow.accepted()) return narrow;
  if (conv.x.dtype != DType::kF32) return Support::no("needs f32");
  if (conv.x_channels_per_group() > kMostChannels)
    return Support::no("{} x channels a group, at most {} are taken", conv.x_channels_per_group(),
                       kMostChannels);
  if (conv.axes[1].dilation != 1 || conv.axes[2].dilation != 1) return Support::no("needs dilation 1");
  const Conv shape = shape_of(conv);
  const bool taken = conv.kind == ConvPassKind::kGradInput ? kernels::cuda::has_narrow_grad_input(shape)
                                                           : kernels::cuda::has_narrow_grad_weight(shape);
  return taken ? Support::yes() : Support::no("no kernel for this window and these channels");
}

// grad_input adds up y channels one after another, however few places there are.
Effort effort_of_tiles(const ConvPass& conv, const Machine& /*machine*/) {
  constexpr double kChannel = 8e6;  // operations that take as long
  Effort effort = effort_of(conv);
  if (is_grad_weight(conv))
    effort.launches = 2;
  else
    effort.operations =
        std::max(effort.operations, kChannel * static_cast<double>(conv.y_channels_per_group()));
  return effort;
}

}  // namespace

const Candidate& narrow_blocks() {
  static const ConvCandidate instance(
      {"cuda.narrow_blocks", kOthers, takes_blocks, effort_of_blocks, make_aligned_step<NarrowBlocksStep>});
  return instance;
}
const Candidate& narrow_tiles() {
  static const ConvCandidate instance(
      {"cuda.narrow_tiles", kOthers, takes_tiles, effort_of_tiles, make_step<PlannedStep<NarrowTiles>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
