// SPDX-License-Identifier: Apache-2.0
// Which kernel.
#include "kernels/cuda/pooling/pool_plan.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/pooling/pool_columns_plan.h"

namespace retrograd::kernels::cuda {
namespace {

bool is_disjoint(const Pool& pool) {
  for (const PoolAxis& a : pool.axes)
    if (a.pad != 0 || a.kernel != a.stride || a.y * a.stride > a.x + a.stride - 1) return false;
  return true;
}

// Of disjoint windows on planes: those that are one window each make up one long row.
int64_t row_of(const Pool& pool) {
  const auto whole = [](const PoolAxis& a) { return a.y == 1 && a.kernel == a.x; };
  const auto untouched = [](const PoolAxis& a) { return a.kernel == 1 && a.stride == 1; };
  const auto& [d, h, w] = pool.axes;
  if (!whole(h) || !whole(w)) return w.x;
  const int64_t plane = h.x * w.x;
  return whole(d) || untouched(d) ? pool.batch * pool.channels * d.x * plane : plane;
}

}  // namespace

PoolDivisor divisor_of(const Pool& pool) {
  if (pool.divisor_override != 0) return {true, 1.0f / static_cast<float>(pool.divisor_override)};
  double count = 1;
  for (const PoolAxis& a : pool.axes) {
    const bool unpadded = a.pad == 0 || pool.count_include_pad;
    if (!unpadded || (a.y - 1) * a.stride - a.pad + a.kernel > a.x + a.pad) return {false, 1.0f};
    count *= static_cast<double>(a.kernel);
  }
  return {true, static_cast<float>(1.0 / count)};
}

Windows windows_of(const Pool& pool) {
  Windows windows{};
  for (int i = 0; i < 3; ++i) {
    const PoolAxis& a = pool.axes[i];
    const auto pad = static_cast<int>(a.pad), x = static_cast<int>(a.x);
    windows.axes[i] = {x,
                       static_cast<int>(a.y),
                       static_cast<int>(a.kernel),
                       static_cast<int>(a.stride),
                       pad,
                       pool.count_include_pad ? -pad : 0,
                       pool.count_include_pad ? x + pad : x};
  }
  const PoolDivisor divisor = divisor_of(pool);
  windows.uniform = divisor.uniform;
  windows.scale = divisor.scale;
  return windows;
}

Pool walked_down(const Pool& pool) {
  const auto untouched = [](const PoolAxis& a) {
    return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.x == a.y;
  };
  Pool turned = pool;
  auto& [d, h, w] = turned.axes;
  if (!untouched(d) || !untouched(h)) return turned;
  turned.batch *= d.x * h.x;
  h = w;
  d = w = {1, 1, 1, 1, 0};
  return turned;
}

// Enough threads to fill a large GPU, but no fewer steps than make the lines that two bands need a small
// part.
VectorsCut vectors_cut(const Pool& pool, bool forward) {
  constexpr int64_t kThreads = 1 << 18, kMostRows = 64;
  const auto& [d, h, w] = pool.axes;
  const int64_t taps = forward ? std::min(w.kernel, w.x) : std::min(ceil_div(w.kernel, w.stride), w.y);
  const int64_t reach = ceil_div(h.kernel, h.stride);
  VectorsCut cut{};
  // Backwards, a thread writes a stride of rows: of long ones there are too few.
  const bool is_long = !forward && h.stride > kMostRows;
  if (reach > kVectorsReach || taps > kVectorsReach || is_long) return cut;
  cut.taps = static_cast<int>(taps);
  cut.reach = static_cast<int>(reach);
  const int64_t unit = forward ? 1 : h.stride, rows = forward ? h.y : h.x;
  const int64_t steps = ceil_div(rows + (forward ? 0 : h.pad % h.stride), unit);
  const int64_t vectors = pool.batch * (forward ? d.y * w.y : d.x * w.x) * pool.channels *
                          static_cast<int64_t>(size_of(pool.x.dtype)) / 16;
  const int64_t most = std::max(int64_t{1}, kMostRows / unit);
  const int64_t band =
      std::clamp(std::max(vectors * rows / kThreads / unit, 2 * (reach - 1)), int64_t{1}, most);
  cut.steps = static_cast<int>(steps);
  cut.band = static_cast<int>(std::min(band, steps));
  return cut;
}

const char* name_of(PoolKernel kernel) {
  static constexpr const char* kNames[] = {"disjoint", "columns", "vectors", "any"};
  return kNames[static_cast<size_t>(kernel)];
}

bool has_pool_kernel(PoolKernel kernel, const Pool& pool, bool channels_last, int alignment) {
  const auto bytes = static_cast<int64_t>(size_of(pool.x.dtype));
  const bool vectors = pool.channels * bytes % 16 == 0 && alignment >= 16;
  const bool uniform = divisor_of(pool).uniform;
  switch (kernel) {
    case PoolKernel::kDisjoint:
      return uniform && is_disjoint(pool) && alignment >= 16 &&
             (channels_last ? vectors : row_of(pool) * bytes % 16 == 0);
    case PoolKernel::kColumns:
      return !(channels_last && vectors) && columns_cut(pool, channels_last, false).planes > 0;
    case PoolKernel::kVectors:
      return channels_last && vectors && vectors_cut(walked_down(pool), false).band > 0;
    case PoolKernel::kAny:
      break;
  }
  return true;
}

PoolKernel pool_kernel(const Pool& pool, bool channels_last, int alignment) {
  for (const PoolKernel kernel : {PoolKernel::kDisjoint, PoolKernel::kColumns, PoolKernel::kVectors})
    if (has_pool_kernel(kernel, pool, channels_last, alignment)) return kernel;
  return PoolKernel::kAny;
}

}  // namespace retrograd::kernels::cuda
