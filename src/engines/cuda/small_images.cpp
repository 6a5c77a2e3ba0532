// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions so small that launches take longer than the arithmetic: one launch a pass, two
// for grad_weight of more than a few images.
#include "kernels/cuda/small_images.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "engines/cuda/candidate.h"

namespace retrograd::engines::cuda {
namespace {

constexpr int64_t kMostElements = 1 << 22;
// That a thread adds one after another, 25 to 50 ns each.
constexpr int64_t kMostTerms = 640, kMostGradInputTerms = 320;
// Microseconds on an H200: a thread's term, looking at a tap, a load, a term of a weight, a load for it, an
// image after another.
constexpr double kTerm = 0.027, kTap = 0.21, kLoad = 0.25, kWeightTerm = 0.042, kWeightLoad = 0.153,
                 kImage = 1.5;
constexpr double kAtOnce = 160;             // blocks that do not slow each other down
constexpr int64_t kMostBlocks = 1024;       // a few for each multiprocessor
constexpr int64_t kFewestThreads = 32;      // of a block that have work
constexpr int64_t kTinyProducts = 1 << 16;  // so few that idle threads do not count
constexpr size_t kSharedBytes = 48 << 10;

struct Work {
  int64_t terms, threads, blocks;
};
int64_t product(const std::array<Window, 3>& axes, int64_t Window::*size) {
  return axes[0].*size * (axes[1].*size) * (axes[2].*size);
}
Work work_of(const ConvPass& p) {
  const int64_t taps = product(p.axes, &Window::kernel), xs = product(p.axes, &Window::x),
                ys = product(p.axes, &Window::y);
  const int64_t xc = p.x_channels_per_group(), yc = p.y_channels_per_group();
  if (p.kind == ConvPassKind::kGradInput)
    return {yc * taps, xs, p.batch * p.groups * ceil_div(xc, 8) * ceil_div(xs, 256)};
  const int64_t parts = kernels::cuda::small_parts(shape_of(p));
  return {ys * ceil_div(p.batch, parts), xc * taps,
          parts * p.groups * ceil_div(yc, 8) * ceil_div(xc * taps, 256)};
}

bool has_small_numbers(const ConvPass& p) {
  for (const Window& a : p.axes)
    for (int64_t value :
         {a.x, a.y, a.kernel, a.stride, a.dilation, a.kernel * a.dilation, a.y * a.stride, a.pad_lo})
      if (value > kMostElements || value < -kMostElements) return false;
  return true;
}

struct SmallImages {
  using Plan = int64_t;  // parts
  static Plan plan(const ConvPass& pass) {
    return is_grad_weight(pass) ? kernels::cuda::small_parts(shape_of(pass)) : 1;
  }
  static int64_t sums(const ConvPass& pass, Plan parts) {
    const int64_t taps = product(pass.axes, &Window::kernel);
    return parts == 1 ? 0 : parts * pass.y_channels * pass.x_channels_per_group() * taps;
  }
  static std::string describe(const ConvPass& /*pass*/, Plan parts) {
    return parts == 1 ? "images in shared memory" : fmt::format("images in shared memory, {} parts", parts);
  }
  static void launch(const ConvPass& pass, const Conv& conv, Plan /*parts*/, float* sums, Stream stream) {
    if (is_grad_weight(pass)) return kernels::cuda::small_grad_weight(conv, sums, stream);
    kernels::cuda::small_grad_input(conv, stream);
  }
};

bool is_small(const Sizes5& sizes) {
  Checked count = 1;
  for (int64_t size : sizes) count = count * size;
  const auto elements = count.get();
  return elements && *elements > 0 && *elements <= kMostElements;
}

Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (is_forward(conv)) return Support::no("grad_input and grad_weight only");
  if (conv.bias) return Support::no("adds no bias");
  for (const Sizes5& sizes : {x_sizes(conv), y_sizes(conv), w_sizes(conv)})
    if (!is_small(sizes)) return Support::no("needs 1 to 2^22 elements");
  if (!has_small_numbers(conv)) return Support::no("needs windows under 2^22");
  const Work work = work_of(conv);
  if (work.terms > (conv.kind == ConvPassKind::kGradInput ? kMostGradInputTerms : kMostTerms))
    return Support::no("needs at most 640 terms of a weight and image, 320 of a grad_input");
  if (work.blocks > kMostBlocks) return Support::no("needs at most 1024 blocks");
  if (work.threads < kFewestThreads && work.terms * work.blocks * 8 > kTinyProducts)
    return Support::no("needs 32 results a block");
  const auto shape = shape_of(conv);
  const size_t bytes = conv.kind == ConvPassKind::kGradInput ? kernels::cuda::small_grad_input_bytes(shape)
                                                             : kernels::cuda::small_grad_weight_bytes(shape);
  if (bytes > kSharedBytes) return Support::no("needs images that fit into 48 KiB");
  return Support::yes();
}

// A block reads its images, then a thread adds one term after another.
Effort effort(const ConvPass& conv, const Machine& machine) {
  Times times(conv, machine);
  const Work work = work_of(conv);
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const double taps = number(product(conv.axes, &Window::kernel)),
               xs = number(product(conv.axes, &Window::x)), ys = number(product(conv.axes, &Window::y));
  const double xc = number(conv.x_channels_per_group()), yc = number(conv.y_channels_per_group());
  double time = 0;
  int64_t parts = 1;
  if (conv.kind == ConvPassKind::kGradInput) {
    const double live = live_terms(conv) / (number(conv.batch * conv.x_channels) * xs);
    time = live * kTerm + taps * kTap + (yc * ys + std::min(8.0, xc) * yc * taps) / 256 * kLoad;
  } else {
    parts = kernels::cuda::small_parts(shape_of(conv));
    const double images = number(ceil_div(conv.batch, parts));
    time = images * (ys * kWeightTerm + (std::min(8.0, yc) * ys + xc * xs) / 256 * kWeightLoad + kImage) -
           kImage;
  }
  times.add(std::max(1.0, number(work.blocks) / kAtOnce) * time, parts > 1 ? 2 : 1);
  return times.effort();
}

}  // namespace

const Candidate& small_images() {
  static const ConvCandidate instance({"cuda.small_images", "grad_input and grad_weight only", supports,
                                       effort, make_step<PlannedStep<SmallImages>>});
  return instance;
}

}  // namespace retrograd::engines::cuda
