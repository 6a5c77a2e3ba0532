// SPDX-License-Identifier: Apache-2.0
// Blocks of pixels, and x channels over blocks where pixels are few.
#include "kernels/cuda/stems/few_terms_plan.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kProcessors = 132, kResident = 4;
// Cycles of a multiprocessor: a place, each of its taps and of its terms; around a block; 128 products with
// what they read, and a result that is written.
constexpr double kPlace = 2.5, kTap = 0.55, kTerm = 0.3, kBlock = 2500, kProducts = 1.3, kResult = 0.1;

FewTermsAxis axis_of(const Axis& a) {
  return {static_cast<int>(a.x),      static_cast<int>(a.y),
          static_cast<int>(a.kernel), a.kernel == 1 ? 1 : static_cast<int>(a.dilation),
          static_cast<int>(a.pad),    FastDiv(a.stride)};
}
bool is_last(const Tensor& t) { return std::abs(t.strides[1]) < std::abs(t.strides[4]); }

}  // namespace

FewTermsPlan few_terms_plan(const Conv& conv) {
  FewTermsPlan p{};
  p.d = axis_of(conv.axes[0]), p.h = axis_of(conv.axes[1]), p.w = axis_of(conv.axes[2]);
  p.x_channels = static_cast<int>(conv.x_channels), p.y_channels = static_cast<int>(conv.y_channels);
  p.terms = p.y_channels * p.d.kernel * p.h.kernel * p.w.kernel;
  p.filled = ceil_of(p.terms, 8) * 8;
  p.channels_fast = is_last(conv.x);
  p.places = static_cast<uint32_t>(conv.batch * p.d.x * p.h.x * p.w.x);
  p.by_w = FastDiv(p.w.x), p.by_h = FastDiv(p.h.x), p.by_d = FastDiv(p.d.x);
  p.by_channels = FastDiv(p.y_channels), p.by_kw = FastDiv(p.w.kernel), p.by_kh = FastDiv(p.h.kernel);
  p.blocks = ceil_div(p.places, kFewTermsPlaces);

  const int64_t chunks = ceil_div(p.x_channels, kFewTermsChunk);
  const int64_t wanted = ceil_div(2 * kProcessors * kResident, p.blocks * conv.groups);
  p.of_split = static_cast<int>(ceil_div(chunks, std::clamp<int64_t>(wanted, 1, chunks))) * kFewTermsChunk;
  p.splits = ceil_of(p.x_channels, p.of_split);
  p.by_chunk = FastDiv(std::min(p.x_channels, kFewTermsChunk));
  const int vector = 16 / static_cast<int>(size_of(conv.x.dtype));  // chunks are whole ones
  p.whole = p.channels_fast && conv.x.strides[1] == 1 && p.x_channels % vector == 0;
  for (const int axis : {0, 2, 3, 4}) p.whole = p.whole && conv.x.strides[axis] % vector == 0;
  p.by_vectors = FastDiv(ceil_of(std::min(p.x_channels, kFewTermsChunk), vector));
  const int64_t values = int64_t{p.filled} * kFewTermsPlaces,
                results = p.channels_fast ? int64_t{kFewTermsPitch} * kFewTermsPlaces : 0;
  p.shared = (int64_t{kFewTermsChunk} * p.filled + std::max(values, results)) * 4;

  const double channels = std::min(p.of_split, p.x_channels);
  const double taps = static_cast<double>(p.terms) / p.y_channels;
  const double cycles = kFewTermsPlaces * (kPlace + taps * kTap + p.terms * kTerm +
                                           channels * (p.filled / 128.0 * kProducts + kResult)) +
                        kBlock / kResident;
  const double blocks = static_cast<double>(p.blocks * conv.groups * p.splits);
  p.cycles = std::max(1.0, blocks / kProcessors) * cycles + kBlock;
  return p;
}

}  // namespace retrograd::kernels::cuda
