// SPDX-License-Identifier: Apache-2.0
// Average pooling along rows, once for every instruction set.
#include "kernels/cpu/row_pool.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_pool.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pool_direct-inl.h"
#include "kernels/cpu/pool_quotients.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

void pool_volumes(const PoolVolumes& p, const std::byte* in, std::byte* out, int64_t count, float* scratch) {
  const auto in_bytes = static_cast<int64_t>(size_of(p.in.dtype));
  const auto out_bytes = static_cast<int64_t>(size_of(p.out.dtype));
  const int64_t rows = p.depth_windows * p.row_windows;
  float* groups = scratch + p.front * p.unit;
  float* quotients = scratch + p.row_floats() + p.front * p.unit;
  float* expanded = scratch + p.row_floats() + p.quotient_floats();
  for (int64_t v = 0; v < count; v += p.at_once) {
    const int64_t now = std::min(p.at_once, count - v);
    divide_volumes(p, in + v * p.in.volume * in_bytes, now, quotients);
    std::byte* to = out + v * p.out.volume * out_bytes;
    if (p.way == PoolWay::kCopy) {
      copy_rows(p, quotients, now, to);
    } else if (p.way == PoolWay::kSlide) {
      slide_rows(p, quotients, now, to);
    } else {
      expand(p, quotients, now * rows, groups, expanded);
      add_rows(p, expanded, now, to);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

constexpr int64_t kShortRow = 512;

HWY_EXPORT(pool_volumes);

struct Chosen {
  void (*volumes)(const PoolVolumes&, const std::byte*, std::byte*, int64_t, float*);
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(pool_volumes)};
  return instance;
}

}  // namespace

void PoolVolumes::derive() {
  terms = kernel / stride;
  rest = kernel % stride;
  const int64_t first = pad / stride - (terms - 1) - (rest > 0 ? 1 : 0), last = (x - 1 + pad) / stride;
  front = std::max<int64_t>(-first, 0);
  pitch = y + std::max(front, last + 1 - y);
  if (out.place != unit) return;
  if (most_rows <= 1 && unit == 1 && kernel == stride && 1 < stride && stride <= kMostPoolPhases)
    way = PoolWay::kCopy;
  if (slides) way = PoolWay::kSlide;
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
  const int64_t zeros = (p.pitch - p.y) * p.unit, pitch = p.pitch * p.unit;
  if (zeros == 0) return;
  // Short rows: a call for each takes longer than all there is.
  if (pitch < kShortRow) return std::fill_n(scratch + p.row_floats(), p.quotient_floats(), 0.0F), void();
  // The zeros behind a row are those before the next one.
  float* row = scratch + p.row_floats() + (p.front - (p.pitch - p.y)) * p.unit;
  std::fill_n(scratch + p.row_floats(), p.front * p.unit, 0.0F);
  for (int64_t i = 1; i <= p.window_rows(); ++i) std::fill_n(row + i * pitch, zeros, 0.0F);
}
void pool_volumes(const PoolVolumes& volumes, const std::byte* in, std::byte* out, int64_t count,
                  float* scratch) {
  chosen().volumes(volumes, in, out, count, scratch);
}

}  // namespace retrograd::kernels::cpu
#endif
