// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with channel multipliers up to 4, any window and any strides of the tensors. forward
// and grad_input take one launch, grad_weight two.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/cuda/candidate.h"
#include "engines/cuda/depthwise/depthwise_pass.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/depthwise_windows/windows_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::DepthwiseWindows;
using kernels::cuda::GatherWindows;
using kernels::cuda::WeightWindows;

constexpr int64_t kMostChannels = 4;   // of the one side of a group
constexpr int64_t kMostTaps = 4096;    // whose weights fit into shared memory, beside each other three times
constexpr int64_t kLargest = 1 << 27;  // size along an axis, padding and gaps counted
constexpr int64_t kLargestStride = 1 << 15;
constexpr int64_t kEnd31 = int64_t{1} << 31;

int most_pack(const Conv& conv) { return kernels::cuda::can_pack(conv) ? 2 : 1; }

std::string text_of(const DepthwiseWindows& p) {
  return fmt::format("lanes along {}, {} x {} threads, runs of {}", p.channels_inside ? "channels" : "places",
                     p.lanes, p.rows, p.run_length);
}

// Plans for threads that take one channel, and two where that is possible.
template <class Plan>
struct OneOrTwo {
  Plan single, packed;
  const Plan& for_addresses(const Conv& conv) const {
    return kernels::cuda::alignment_of({conv.x.data, conv.y.data}) >= 4 ? packed : single;
  }
};

struct Gather {
  using Plan = OneOrTwo<GatherWindows>;
  static Plan plan(const ConvPass& pass) {
    const Conv conv = shape_of(pass);
    return {kernels::cuda::gather_windows(conv, is_forward(pass), 1),
            kernels::cuda::gather_windows(conv, is_forward(pass), most_pack(conv))};
  }
  static std::string describe(const ConvPass&, const Plan& plan) { return text_of(plan.packed.windows); }
  static void launch(const ConvPass& pass, const Conv& conv, const Plan& plan, float*, Stream stream) {
    kernels::cuda::windows_gather(conv, is_forward(pass), plan.for_addresses(conv), stream);
  }
};

struct Weight {
  using Plan = OneOrTwo<WeightWindows>;
  static Plan plan(const ConvPass& pass) {
    const Conv conv = shape_of(pass);
    return {kernels::cuda::weight_windows(conv, 1), kernels::cuda::weight_windows(conv, most_pack(conv))};
  }
  static int64_t sums(const ConvPass&, const Plan& plan) {
    return std::max(plan.single.parts, plan.packed.parts) * plan.single.weights;
  }
  static std::string describe(const ConvPass&, const Plan& plan) {
    return fmt::format("{}, {}, {} parts", name_of(plan.packed.tile), text_of(plan.packed.windows),
                       plan.packed.parts);
  }
  static void launch(const ConvPass&, const Conv& conv, const Plan& plan, float* sums, Stream stream) {
    kernels::cuda::windows_grad_weight(conv, plan.for_addresses(conv), sums, stream);
  }
};

// Places, and distances between them, fit the kernels' 32 bits.
bool fits(const Window& w, int64_t x_stride, int64_t y_stride) {
  const int64_t stride = w.y == 1 ? 1 : w.stride, dilation = w.kernel == 1 ? 1 : w.dilation;
  for (const int64_t size : {w.x, w.y, w.kernel, dilation, std::abs(w.pad_lo)})
    if (size > kLargest) return false;
  if (stride > kLargestStride || w.y * stride > kLargest || w.kernel * dilation > kLargest) return false;
  const int64_t reach = std::max({w.x, w.y, w.kernel * dilation});
  const int64_t distance = std::max(std::abs(x_stride), std::abs(y_stride));
  return distance < kEnd31 && reach * distance < kEnd31;
}

int64_t blocks_of(const ConvPass& pass) {
  const Conv conv = shape_of(pass);
  return is_grad_weight(pass) ? kernels::cuda::weight_windows(conv, 1).blocks
                              : kernels::cuda::gather_windows(conv, is_forward(pass), 1).blocks;
}

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support depthwise = is_depthwise(conv, kMostChannels); !depthwise.accepted()) return depthwise;
  const int64_t xs = conv.x_channels_per_group(), ys = conv.y_channels_per_group();
  if (!fits_31_bits(conv)) return Support::no("needs 1 to 2^31 - 1 elements");
  for (size_t i = 0; i < 3; ++i)
    if (!fits(conv.axes[i], conv.x.strides[i + 2], conv.y.strides[i + 2]))
      return Support::no("sizes, strides or distances of places are too large");
  const Window images{.x = conv.batch, .y = conv.batch};
  const Window channels{.x = 1, .y = 1};  // whose offsets are of 64 bits
  if (!fits(images, conv.x.strides[0], conv.y.strides[0]) ||
      !fits(channels, conv.x.strides[1], conv.y.strides[1]))
    return Support::no("images or channels are too far apart");
  const auto& [d, h, w] = conv.axes;
  if (d.kernel * h.kernel > kMostTaps || d.kernel * h.kernel * w.kernel * std::max(xs, ys) > kMostTaps)
    return Support::no("needs at most 4096 weights a group");
  if (blocks_of(conv) >= kEnd31) return Support::no("needs fewer than 2^31 blocks");
  return Support::yes();
}

// What does not lie side by side in memory takes several loads.
Effort effort(const ConvPass& conv, const Machine& machine) {
  constexpr double kScattered = 4;
  const Conv shape = shape_of(conv);
  const int pack = most_pack(shape);
  const bool weight = is_grad_weight(conv);
  double microseconds;
  DepthwiseWindows p;
  if (weight) {
    const WeightWindows plan = kernels::cuda::weight_windows(shape, pack);
    microseconds = plan.microseconds, p = plan.windows;
  } else {
    const GatherWindows plan = kernels::cuda::gather_windows(shape, is_forward(conv), pack);
    microseconds = plan.microseconds, p = plan.windows;
  }
  const int between = p.channels_inside
                          ? std::max(std::abs(p.result_channel), std::abs(p.source_channel))
                          : std::max(std::abs(p.inner.result_pitch), std::abs(p.inner.source_pitch));
  const double scattered = between > 2 ? kScattered : 1;
  Times times(conv, machine);
  times.add(scattered * microseconds * kPacedProcessors / processors_of(machine), weight ? 2 : 1,
            scattered * bytes_of(conv));
  return times.effort();
}

}  // namespace

const Candidate& depthwise_windows() {
  static const ConvCandidate instance({"cuda.depthwise_windows", "convolutions only", supports, effort,
                                       make_gather_or_weight<PlannedStep<Gather>, PlannedStep<Weight>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
