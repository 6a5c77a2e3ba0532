// SPDX-License-Identifier: Apache-2.0
// Which kernel, and for how many threads.
#include "kernels/cuda/pooling/pool_forward_plan.h"

#include "kernels/cuda/pooling/pool_forward_columns.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kManyPlaces = 32;  // of a window that several threads share

bool is_untouched(const PoolAxis& a) { return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.x == a.y; }
bool is_whole(const PoolAxis& a) { return a.y == 1 && a.kernel - a.pad >= a.x; }

// Whether several threads of a plane pay: small ones that are no whole vectors would be read by elements.
bool sums_whole(int64_t places, const Pool& pool) {
  constexpr int64_t kSmall = 128;
  return places > kSmall || places * static_cast<int64_t>(size_of(pool.x.dtype)) % 16 == 0;
}

bool has_tiles(const Pool& pool) {
  const auto& [d, h, w] = pool.axes;
  if (h.kernel != w.kernel || h.stride != w.stride) return false;
  return (w.kernel == 2 && w.stride == 2) || (w.kernel == 3 && w.stride <= 2);
}

}  // namespace

const char* name_of(ForwardKernel kernel) {
  switch (kernel) {
    case ForwardKernel::kTiles:
      return "tiles";
    case ForwardKernel::kWhole:
      return "whole";
    case ForwardKernel::kShared:
      return "shared";
    case ForwardKernel::kColumns:
      return "columns";
    case ForwardKernel::kEach:
      break;
  }
  return "each";
}

ForwardChoice forward_choice(const Pool& pool, bool channels_last) {
  const auto& [d, h, w] = pool.axes;
  if (!channels_last && is_whole(h) && is_whole(w) && (is_whole(d) || is_untouched(d)) &&
      sums_whole(whole_planes(pool).places, pool))
    return {ForwardKernel::kWhole, {}};
  // Planes, and channels that are no whole vectors, would be read 2 or 4 bytes at a time by the others.
  const bool vectors = channels_last && pool.channels * static_cast<int64_t>(size_of(pool.x.dtype)) % 16 == 0;
  if (!vectors)
    if (const ForwardCut cut = forward_cut(pool, channels_last); cut.planes > 0)
      return {ForwardKernel::kColumns, cut};
  if (channels_last && has_tiles(pool)) return {ForwardKernel::kTiles, {}};
  int64_t places = 1;
  for (const PoolAxis& a : pool.axes) places *= a.kernel < a.x ? a.kernel : a.x;
  return {channels_last && places >= kManyPlaces ? ForwardKernel::kShared : ForwardKernel::kEach, {}};
}

int forward_vector(const Pool& pool, bool channels_last, int alignment) {
  const auto wide = static_cast<int>(16 / size_of(pool.x.dtype));
  return channels_last && pool.channels % wide == 0 && alignment >= 16 ? wide : 1;
}

WholePlanes whole_planes(const Pool& pool) {
  const bool volumes = is_whole(pool.axes[0]);
  WholePlanes whole{};
  whole.planes = pool.batch * pool.channels * (volumes ? 1 : pool.axes[0].x);
  whole.places = pool.axes[1].x * pool.axes[2].x * (volumes ? pool.axes[0].x : 1);
  whole.lanes = whole.places <= 128 ? 8 : whole.places <= 2048 ? 32 : 256;
  const Windows windows = windows_of(pool);
  if (windows.uniform) {
    whole.scale = windows.scale;
    return whole;
  }
  double count = 1;
  for (const WindowAxis& a : windows.axes) count *= count_of(a, 0);
  whole.scale = static_cast<float>(1 / count);
  return whole;
}

}  // namespace retrograd::kernels::cuda
