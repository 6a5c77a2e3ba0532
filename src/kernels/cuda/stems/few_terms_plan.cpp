// SPDX-License-Identifier: Apache-2.0
// Blocks of places, and result channels over blocks where places are few.
#include "kernels/cuda/stems/few_terms_plan.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kProcessors = 132, kResident = 4;
// Cycles of a multiprocessor: a place, each of its taps and of its terms; around a block; 128 products with
// what they read, of one and of two places a thread, and a result that is written.
constexpr double kPlace = 2.5, kTap = 0.55, kTerm = 0.3, kBlock = 2500, kResult = 0.1;
constexpr double kProducts[] = {2.2, 1.3};

FewTermsAxis axis_of(const Axis& a, bool forward) {
  return {static_cast<int>(forward ? a.y : a.x),
          static_cast<int>(forward ? a.x : a.y),
          static_cast<int>(a.kernel),
          a.kernel == 1 ? 1 : static_cast<int>(a.dilation),
          static_cast<int>(a.pad),
          FastDiv(a.y == 1 ? 1 : a.stride)};
}
bool is_last(const Tensor& t) { return std::abs(t.strides[1]) < std::abs(t.strides[4]); }

// Whether the channels of every place are whole vectors of 16 bytes, an aligned address given.
bool has_vectors(const Tensor& t, int channels, int vector) {
  if (t.strides[1] != 1 || channels % vector != 0) return false;
  return std::all_of(&t.strides[2], &t.strides[5], [&](int64_t s) { return s % vector == 0; }) &&
         t.strides[0] % vector == 0;
}

}  // namespace

FewTermsPlan few_terms_plan(const Conv& conv, bool forward) {
  const FewTermsOperands operands = few_terms_operands(conv, forward);
  FewTermsPlan p{};
  p.forward = forward;
  p.d = axis_of(conv.axes[0], forward);
  p.h = axis_of(conv.axes[1], forward);
  p.w = axis_of(conv.axes[2], forward);
  p.to_channels = static_cast<int>(forward ? conv.y_channels : conv.x_channels);
  p.from_channels = static_cast<int>(forward ? conv.x_channels : conv.y_channels);
  const int taps = p.d.kernel * p.h.kernel * p.w.kernel;
  p.terms = p.from_channels * taps;
  p.filled = p.terms <= 32 ? ceil_of(p.terms, 8) * 8 : ceil_of(p.terms, 16) * 16;
  const int each = few_terms_each(p.filled), block = each * kFewTermsThreads;
  const int vector = 16 / static_cast<int>(size_of(operands.to.dtype));
  p.vector = has_vectors(operands.from, p.from_channels, vector) ? vector : 1;
  p.channels_fast = is_last(operands.to);
  p.whole = p.channels_fast && has_vectors(operands.to, p.to_channels, vector);
  p.places = static_cast<uint32_t>(conv.batch * p.d.to * p.h.to * p.w.to);
  p.by_w = FastDiv(p.w.to), p.by_h = FastDiv(p.h.to), p.by_d = FastDiv(p.d.to);
  p.by_channels = FastDiv(p.from_channels), p.by_kw = FastDiv(p.w.kernel), p.by_kh = FastDiv(p.h.kernel);
  p.blocks = ceil_div(p.places, block);

  const int64_t chunks = ceil_div(p.to_channels, kFewTermsChunk);
  const int64_t wanted = ceil_div(2 * kProcessors * kResident, p.blocks * conv.groups);
  p.of_split = static_cast<int>(ceil_div(chunks, std::clamp<int64_t>(wanted, 1, chunks))) * kFewTermsChunk;
  p.splits = ceil_of(p.to_channels, p.of_split);
  p.by_chunk = FastDiv(std::min(p.to_channels, kFewTermsChunk));
  p.by_vectors = FastDiv(ceil_of(std::min(p.to_channels, kFewTermsChunk), vector));
  const int values = p.filled * block, results = p.channels_fast ? kFewTermsPitch * block : 0;
  p.shared = (kFewTermsChunk * p.filled + std::max(values, results)) * 4;

  const double channels = std::min(p.of_split, p.to_channels);
  const double cycles = block * (kPlace + taps * kTap + p.terms * kTerm +
                                 channels * (p.filled / 128.0 * kProducts[each - 1] + kResult)) +
                        kBlock / kResident;
  const auto blocks = static_cast<double>(p.blocks * conv.groups * p.splits);
  p.cycles = std::max(1.0, blocks / kProcessors) * cycles + kBlock;
  return p;
}

}  // namespace retrograd::kernels::cuda
