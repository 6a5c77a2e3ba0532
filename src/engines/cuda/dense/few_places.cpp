// SPDX-License-Identifier: Apache-2.0
// grad_weight where y has up to 16 pixels: outer products, bound by the bytes of the weights
// (kernels/cuda/dense_weight/few_places.h).
#include "kernels/cuda/dense_weight/few_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "engines/cuda/candidate.h"

namespace retrograd::engines::cuda {
namespace {

// Products of a microsecond on an H200, without and with a look at the edge; bytes that are stored meanwhile.
constexpr double kSums = 20e6, kLooked = 7e6, kStored = 2.6e6;
// Microseconds of a block that loads x, a dozen of which a multiprocessor has; and of the first and last.
constexpr double kBlock = 1.5 / (12 * kPacedProcessors), kEnds = 3;

struct Places {
  using Plan = bool;  // whether weights are channels last
  static Plan plan(const ConvPass& pass) { return is_channels_last(pass.w, w_sizes(pass)); }
  static std::string describe(const ConvPass& pass, Plan last) {
    return fmt::format("{} places", kernels::cuda::few_places_of(shape_of(pass), last).places);
  }
  static void launch(const ConvPass& /*pass*/, const Conv& conv, Plan last, float* /*sums*/, Stream stream) {
    kernels::cuda::few_places(kernels::cuda::few_places_of(conv, last), stream);
  }
};

bool is_too_large(const ConvPass& p) {
  constexpr int64_t kMost = int64_t{1} << 30, kMostBlocks = 65535;
  Checked columns = p.x_channels_per_group();
  for (const Window& w : p.axes) {
    for (const int64_t size : {w.x, w.kernel, w.stride, w.dilation, w.pad_lo < 0 ? -w.pad_lo : w.pad_lo})
      if (size >= kMost) return true;
    columns = columns * w.kernel;
  }
  return !columns.get() || *columns.get() >= kMost || p.groups > kMostBlocks ||
         p.y_channels_per_group() > kMostBlocks * 32 || p.x_channels >= kMost;
}

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (!is_grad_weight(conv)) return Support::no("grad_weight only");
  if (conv.groups > 1 && conv.x_channels == conv.groups)
    return Support::no("one x channel a group: rows of weights are too short");
  if (!has_one_wide_type(conv) || !is_wide_type(conv.w.dtype))
    return Support::no("needs one of f32, f16 and bf16 for both operands");
  Checked places = conv.batch;
  for (const Window& w : conv.axes) {
    if (w.x < 1 || w.kernel < 1) return Support::no("nothing to add up");
    places = places * w.y;
  }
  if (!places.get() || *places.get() < 1 || *places.get() > kernels::cuda::kMostFewPlaces)
    return Support::no("needs 1 to {} places of y", kernels::cuda::kMostFewPlaces);
  const Sizes5 sizes = w_sizes(conv);
  if (!is_planes(conv.w, sizes) && !is_channels_last(conv.w, sizes))
    return Support::no("needs dense weights");
  if (is_too_large(conv)) return Support::no("sizes beyond 30 bits");
  return Support::yes();
}

Effort effort(const ConvPass& conv, const Machine& machine) {
  const kernels::cuda::FewPlaces few = kernels::cuda::few_places_of(shape_of(conv), true);
  int places = 1;
  while (places < few.places) places *= 2;
  const double weights = static_cast<double>(few.columns) * static_cast<double>(conv.y_channels);
  const double bytes = weights * static_cast<double>(size_of(conv.w.dtype));
  const auto blocks = static_cast<double>(kernels::cuda::few_places_blocks(few));
  const double sums = weights * places / (few.padded ? kLooked : kSums);
  Times times(conv, machine);
  times.add(
      (std::max(sums, bytes / kStored) + blocks * kBlock) * kPacedProcessors / processors_of(machine) + kEnds,
      1, bytes_of(conv));
  return times.effort();
}

}  // namespace

const Candidate& few_places() {
  static const ConvCandidate instance(
      {"cuda.few_places", "grad_weight only", supports, effort, make_step<PlannedStep<Places>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
