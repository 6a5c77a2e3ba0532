// SPDX-License-Identifier: Apache-2.0
// Transposition between planes and lanes, once for every instruction set.
#include "kernels/cpu/depthwise/depthwise_lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise/depthwise_lanes.cpp"
#include "hwy/cache_control.h"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/float_at.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vector_shape-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = RG_VECTORS;
using D = hn::CappedTag<float, kMostPlaneLanes>;
using V = hn::Vec<D>;
static_assert(has_lanes(hn::MaxLanes(D()), kShape.plane_lanes()));

int64_t plane_lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

void planes_to_lanes_one_by_one(const float* const* planes, int64_t count, float* out) {
  const int64_t lanes = plane_lanes();
  for (int64_t l = 0; l < lanes; ++l)
    for (int64_t i = 0; i < count; ++i) out[i * lanes + l] = float_at(planes[l] + i);
}

void lanes_to_planes_one_by_one(const float* in, int64_t count, float* const* planes) {
  const int64_t lanes = plane_lanes();
  for (int64_t l = 0; l < lanes; ++l)
    for (int64_t i = 0; i < count; ++i) put_float(in[i * lanes + l], planes[l] + i);
}

#if !RG_HAS_LANES
void planes_to_lanes(const float* const* planes, int64_t count, float* out) {
  planes_to_lanes_one_by_one(planes, count, out);
}
void lanes_to_planes(const float* in, int64_t count, float* const* planes) {
  lanes_to_planes_one_by_one(in, count, planes);
}
#else
// Block b holds four places of planes[4·b].
template <class Tag>
HWY_INLINE hn::Vec<Tag> load_blocks(Tag d, const float* const* planes, int64_t at) {
  if constexpr (hn::MaxLanes(Tag()) <= 4) {
    return hn::LoadU(d, planes[0] + at);
  } else {
    const hn::Half<Tag> half;
    return hn::Combine(d, load_blocks(half, planes + hn::MaxLanes(Tag()) / 2, at),
                       load_blocks(half, planes, at));
  }
}

template <class Tag>
HWY_INLINE void store_blocks(hn::Vec<Tag> v, Tag d, float* const* planes, int64_t at) {
  if constexpr (hn::MaxLanes(Tag()) <= 4) {
    hn::StoreU(v, d, planes[0] + at);
  } else {
    const hn::Half<Tag> half;
    store_blocks(hn::LowerHalf(half, v), half, planes, at);
    store_blocks(hn::UpperHalf(half, v), half, planes + hn::MaxLanes(Tag()) / 2, at);
  }
}

// The 4 × 4 transpose of every block; its own inverse.
HWY_INLINE void transpose_blocks(V& v0, V& v1, V& v2, V& v3) {
  const D d;
  const hn::Repartition<uint64_t, D> d64;
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, v0, v1));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, v2, v3));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d, v0, v1));
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d, v2, v3));
  v0 = hn::BitCast(d, hn::InterleaveLower(d64, low01, low23));
  v1 = hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23));
  v2 = hn::BitCast(d, hn::InterleaveLower(d64, high01, high23));
  v3 = hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23));
}

// Sixteen rows at once are more than the machine follows by itself. Every line once in 16 places.
HWY_INLINE void prefetch(const float* const* planes, int64_t at) {
  constexpr int64_t kAhead = 128;
  const int64_t quarter = plane_lanes() / 4, first = at / 4 % 4 * quarter;
  for (int64_t l = first; l < first + quarter; ++l) hwy::Prefetch(planes[l] + at + kAhead);
}

HWY_INLINE void four_to_lanes(const float* const* planes, int64_t at, float* out) {
  const D d;
  const int64_t n = plane_lanes();
  V v0 = load_blocks(d, planes, at), v1 = load_blocks(d, planes + 1, at), v2 = load_blocks(d, planes + 2, at),
    v3 = load_blocks(d, planes + 3, at);
  transpose_blocks(v0, v1, v2, v3);
  hn::Store(v0, d, out);
  hn::Store(v1, d, out + n);
  hn::Store(v2, d, out + 2 * n);
  hn::Store(v3, d, out + 3 * n);
}

HWY_INLINE void four_to_planes(const float* in, int64_t at, float* const* planes) {
  const D d;
  const int64_t n = plane_lanes();
  V v0 = hn::Load(d, in), v1 = hn::Load(d, in + n), v2 = hn::Load(d, in + 2 * n),
    v3 = hn::Load(d, in + 3 * n);
  transpose_blocks(v0, v1, v2, v3);
  store_blocks(v0, d, planes, at);
  store_blocks(v1, d, planes + 1, at);
  store_blocks(v2, d, planes + 2, at);
  store_blocks(v3, d, planes + 3, at);
}

void planes_to_lanes(const float* const* planes, int64_t count, float* out) {
  const int64_t n = plane_lanes();
  if (count < 4) return planes_to_lanes_one_by_one(planes, count, out);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    prefetch(planes, i);
    four_to_lanes(planes, i, out + i * n);
  }
  if (i < count) four_to_lanes(planes, count - 4, out + (count - 4) * n);
}

void lanes_to_planes(const float* in, int64_t count, float* const* planes) {
  const int64_t n = plane_lanes();
  if (count < 4) return lanes_to_planes_one_by_one(in, count, planes);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) four_to_planes(in + i * n, i, planes);
  if (i < count) four_to_planes(in + (count - 4) * n, count - 4, planes);
}
#endif

void copy_lanes(const float* source, int64_t step, int64_t count, float* out) {
  const D d;
  const int64_t n = plane_lanes();
  for (int64_t i = 0; i < count; ++i) hn::Store(hn::LoadU(d, source + i * step), d, out + i * n);
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {

RG_EXPORT(RG_CHOSEN, planes_to_lanes)
RG_EXPORT(RG_CHOSEN, lanes_to_planes)
RG_EXPORT(RG_CHOSEN, copy_lanes)

void planes_to_lanes(const float* const* planes, int64_t count, float* out) {
  chosen_planes_to_lanes()(planes, count, out);
}
void lanes_to_planes(const float* in, int64_t count, float* const* planes) {
  chosen_lanes_to_planes()(in, count, planes);
}
void copy_lanes(const float* source, int64_t step, int64_t count, float* out) {
  chosen_copy_lanes()(source, step, count, out);
}

}  // namespace retrograd::kernels::cpu
#endif
