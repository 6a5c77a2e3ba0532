// SPDX-License-Identifier: Apache-2.0
// grad_weight in 16-bit types on Hopper, one tap a tile: for strides, kernels of any size, many weights and
// few pixels (kernels/cuda/dense_weight/tap_weight.h).
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/weight_step.h"
#include "kernels/cuda/dense_weight/tap_weight.h"
#include "kernels/cuda/dense_weight/weight_parts.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::TapPlan;
using kernels::cuda::WeightResults;

constexpr int64_t kFewestChannels = 16;  // fewer leave most of a tile empty
constexpr int64_t kChunk = 8;            // channels of 16 bytes

TapPlan plan_of(const ConvPass& pass) {
  TapPlan plan{};
  kernels::cuda::plan_tap_weight(shape_of(pass), pass.x.dtype, &plan);
  return plan;
}

class TapProductStep final : public WeightStep {
 public:
  explicit TapProductStep(const ConvPass& pass) : WeightStep(pass), plan_(plan_of(pass)) {}
  std::string describe() const override {
    const uint32_t shares = plan_.walk.cluster.divisor, parts = plan_.walk.parts.divisor;
    return fmt::format("tiles {} of a tap, {}{}{}{}", name_of(plan_.cut), describe_rows(),
                       shares > 1 ? fmt::format(", clusters of {}", shares) : "",
                       parts > 1 ? fmt::format(", {} parts", parts) : "",
                       plan_.results == WeightResults::kInPlace ? ", results in place" : "");
  }

 private:
  size_t product_bytes() const override {
    return result_bytes(plan_.results, plan_.walk.parts.divisor * plan_.walk.weights);
  }
  bool multiply(const Conv& conv, const void* x, const void* y, std::byte* workspace,
                Stream stream) const override {
    const int64_t filled = plan_.walk.x_channels;
    auto* const parts = reinterpret_cast<float*>(workspace);
    void* const results = target_of(plan_.results, conv, workspace);
    kernels::cuda::tap_weight(plan_, type(), x, y, results, parts, stream);
    if (results != nullptr)
      take_results(plan_.results, conv, filled, workspace, stream);
    else
      kernels::cuda::add_weight_parts(
          {conv, kernels::cuda::WeightRepair::kNone, false, filled, parts, plan_.walk.parts.divisor}, stream);
    return true;
  }

  TapPlan plan_;
};

// What the kernel counts with 32 bits: places, taps, positions along an axis. Plans look at every tap of one.
bool is_too_large(const ConvPass& p) {
  constexpr int64_t kMost = int64_t{1} << 29, kMostTaps = 4096;
  if (!fits_31_bits(x_sizes(p)) || !fits_31_bits(y_sizes(p))) return true;
  if (std::max(p.x_channels, p.y_channels) >= kMost) return true;
  Checked weights = Checked(p.x_channels_per_group() + 7) * p.y_channels, taps = 1, places = p.batch;
  for (const Window& w : p.axes) {
    if (w.kernel < 1 || w.kernel > kMostTaps || w.stride >= kMost || w.dilation >= kMost ||
        std::abs(w.pad_lo) >= kMost)
      return true;
    const Checked reach = Checked(w.y) * w.stride + Checked(w.kernel) * w.dilation;
    if (!reach.get() || *reach.get() >= kMost) return true;
    taps = taps * w.kernel;
    places = places * w.y;
  }
  weights = weights * taps;
  return !weights.get() || *weights.get() >= int64_t{1} << 40 || *taps.get() >= kMost ||
         *places.get() >= kMost;
}

Support supports(const ConvPass& conv, const Machine& machine) {
  if (!is_grad_weight(conv)) return Support::no("grad_weight only");
  if (conv.x.dtype != conv.y.dtype || !is_half_type(conv.x.dtype))
    return Support::no("needs f16 or bf16 operands");
  if (is_rounded(conv, conv.x.dtype)) return Support::no("does not round operands");
  const int64_t x = conv.x_channels_per_group(), y = conv.y_channels_per_group();
  if (std::min(x, y) < kFewestChannels)
    return Support::no("needs {} channels of both sides a group", kFewestChannels);
  if (conv.groups > 1 && (x % kChunk != 0 || y % kChunk != 0))
    return Support::no("needs groups of multiples of 8 channels");
  if (is_too_large(conv)) return Support::no("sizes beyond 32-bit counts of places and taps");
  if (!has_warpgroups(machine)) return Support::no("needs a GPU of compute capability 9.0");
  TapPlan plan{};
  if (!kernels::cuda::plan_tap_weight(shape_of(conv), conv.x.dtype, &plan))
    return Support::no("more tiles than a launch has blocks");
  return Support::yes();
}

// The plan's own time, in which parts are added, and copies of what does not lie as rows.
Effort effort(const ConvPass& conv, const Machine& machine) {
  const TapPlan plan = plan_of(conv);
  Times times(conv, machine);
  add_row_copies(conv, &times);
  times.add(plan.microseconds * kPacedProcessors / processors_of(machine), 1, bytes_of(conv));
  return times.effort();
}

}  // namespace

const Candidate& tap_products() {
  static const ConvCandidate instance(
      {"cuda.tap_products", "grad_weight only", supports, effort, make_aligned_step<TapProductStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda
