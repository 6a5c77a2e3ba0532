// SPDX-License-Identifier: Apache-2.0
// Average pooling along rows, once for every instruction set.
#include "kernels/cpu/pooling/row_pool.h"

#include <algorithm>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pooling/row_pool.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_direct-inl.h"
#include "kernels/cpu/pooling/pool_fused-inl.h"
#include "kernels/cpu/pooling/pool_quotients.h"
#include "kernels/cpu/pooling/pool_stream-inl.h"
#include "kernels/cpu/pooling/pool_terms-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vector_shape-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

void pool_volumes(const PoolVolumes& p, const std::byte* in, std::byte* out, int64_t count, float* scratch) {
  const auto in_bytes = static_cast<int64_t>(size_of(p.in.dtype));
  const auto out_bytes = static_cast<int64_t>(size_of(p.out.dtype));
  const int64_t rows = p.depth_windows * p.row_windows;
  if (p.is_fused()) return fuse_rows(p, in, out, count);
  float* groups = scratch + p.front;
  float* quotients = scratch + p.row_floats() + p.front;
  float* expanded = scratch + p.row_floats() + p.quotient_floats();
  for (int64_t v = 0; v < count; v += p.at_once) {
    const int64_t now = std::min(p.at_once, count - v);
    divide_volumes(p, in + v * p.in.volume * in_bytes, now, quotients);
    std::byte* to = out + v * p.out.volume * out_bytes;
    if (p.way == PoolWay::kStream) {
      stream_rows(p, quotients, now, to);
    } else if (p.way == PoolWay::kTerms) {
      put_listed(p, quotients, now, to);
    } else if (p.way == PoolWay::kCopy) {
      copy_rows(p, quotients, now, to);
    } else if (p.way == PoolWay::kSlide) {
      slide_rows(p, quotients, now, to);
    } else {
      expand(p, quotients, now * rows, groups, expanded);
      add_rows(p, expanded, now, to);
    }
  }
}

static_assert(kLanes == kShape.pool_lanes() && kFusesPooling == kShape.fuses_pooling());

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

constexpr int64_t kShortRow = 512;

RG_EXPORT(RG_CHOSEN, pool_volumes)

}  // namespace

void PoolVolumes::derive(const VectorShape& shape) {
  const int64_t lanes = shape.pool_lanes();
  terms = kernel / stride;
  rest = kernel % stride;
  const int64_t first = pad / stride - (terms - 1) - (rest > 0 ? 1 : 0), last = (x - 1 + pad) / stride;
  front = std::max<int64_t>(-first, 0);
  pitch = y + std::max(front, last + 1 - y);
  if (out.place != 1) return;
  if (listed.vectors > 0) {
    way = PoolWay::kTerms;
    front = 0;
    pitch = y;
    return;
  }
  if (most_rows <= 1 && kernel == stride && 1 < stride && stride <= kMostPoolPhases) way = PoolWay::kCopy;
  if (slides) way = PoolWay::kSlide;
  // Vectors that are no whole line of the cache gain nothing from lying in one.
  if (stream.vectors != nullptr && (x % 8 == 0 || lanes == kMostPoolLanes)) way = PoolWay::kStream;
  // Of eight lanes, three at a time leave too few.
  const bool fits = fused == PoolWay::kLong     ? kernel < 4 * lanes
                    : fused == PoolWay::kThrees ? lanes == kMostPoolLanes
                                                : true;
  if (fused != PoolWay::kExpand && shape.fuses_pooling() && fits) way = fused;
}
int64_t pool_stream_period(int64_t lanes, int64_t windows, int64_t stride, int64_t copies) {
  // Rows that are not repeated are one long row.
  const int64_t group = copies == 1 ? stride : windows * stride * copies;
  return group / std::gcd(group, lanes);
}
int64_t list_pool_stream(int64_t lanes, int64_t windows, int64_t stride, int64_t copies, int64_t period,
                         PoolStreamVector* vectors) {
  int64_t row = 0, window = 0, within = 0, copy = 0;  // where the next result lies
  for (PoolStreamVector* v = vectors; v != vectors + period; ++v) {
    std::array<int64_t, kMostPoolLanes> from;
    int64_t lowest = INT64_MAX, highest = 0;
    v->turn = lanes;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t at = row + window;
      if (lane > 0 && at < from[static_cast<size_t>(lane - 1)] && v->turn == lanes) v->turn = lane;
      from[static_cast<size_t>(lane)] = at;
      lowest = std::min(lowest, at);
      highest = std::max(highest, at);
      if (++within < stride) continue;
      within = 0;
      if (++window < windows || copies == 1) continue;
      window = 0;
      if (++copy < copies) continue;
      copy = 0;
      row += windows;
    }
    const bool whole = highest - lowest < lanes;
    if (whole) v->turn = lanes;
    v->from = whole ? lowest : from[0];
    v->second = whole ? lowest : from[static_cast<size_t>(v->turn)];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t index = from[static_cast<size_t>(lane)] - (lane < v->turn ? v->from : v->second);
      if (index < 0 || index >= lanes) return 0;
      v->lane[static_cast<size_t>(lane)] = static_cast<int32_t>(index);
    }
  }
  return row + window;
}
void list_pool_phases(int64_t stride, int64_t kernel, PoolPhase* phases) {
  for (int64_t r = 0; r < stride; ++r)
    for (int64_t lane = 0; lane < kMostPoolLanes; ++lane) {
      const auto i = static_cast<size_t>(lane);
      phases[r].window[i] = static_cast<int32_t>((r + lane) / stride);
      phases[r].more[i] = (r + lane) % stride < kernel % stride ? ~0u : 0u;
    }
}
void clear_pool_scratch(const PoolVolumes& p, float* scratch) {
  const int64_t zeros = p.pitch - p.y, pitch = p.pitch;
  if (zeros == 0 || p.is_fused()) return;
  // Short rows: a call for each takes longer than all there is.
  if (pitch < kShortRow) return std::fill_n(scratch + p.row_floats(), p.quotient_floats(), 0.0F), void();
  // The zeros behind a row are those before the next one.
  float* row = scratch + p.row_floats() + p.front - (p.pitch - p.y);
  std::fill_n(scratch + p.row_floats(), p.front, 0.0F);
  for (int64_t i = 1; i <= p.window_rows(); ++i) std::fill_n(row + i * pitch, zeros, 0.0F);
}
void pool_volumes(const PoolVolumes& volumes, const std::byte* in, std::byte* out, int64_t count,
                  float* scratch) {
  chosen_pool_volumes()(volumes, in, out, count, scratch);
}

}  // namespace retrograd::kernels::cpu
#endif
