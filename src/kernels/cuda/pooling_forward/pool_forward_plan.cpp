// SPDX-License-Identifier: Apache-2.0
// Which kernel, and for how many threads.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/pooling/pool_columns_plan.h"
#include "kernels/cuda/pooling_forward/pool_forward.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kManyPlaces = 32;    // of a window that several threads share,
constexpr int64_t kManyResults = 512;  // unless there are that many vectors of results for each of its lines
constexpr int64_t kThreads = 256;      // of a block

// at_once: places that a block takes with one load a thread. A second launch takes as long as a few dozen
// loads after each other; as many blocks as a large GPU runs at once hide all loads.
WindowParts parts_of(int64_t blocks, int64_t places, int64_t at_once) {
  constexpr int64_t kFewBlocks = 256, kBlocks = 1024, kManyLoads = 32, kLeastLoads = 4;
  if (blocks >= kFewBlocks || places < kManyLoads * at_once) return {1, places};
  const int64_t loads = ceil_div(places, ceil_div(kBlocks, blocks) * at_once);
  const int64_t part = std::max(loads, kLeastLoads) * at_once;
  return {ceil_div(places, part), part};
}

int64_t vectors_of(const Pool& pool) {
  const auto wide = static_cast<int64_t>(16 / size_of(pool.x.dtype));
  return pool.channels % wide == 0 ? pool.channels / wide : pool.channels;
}
int64_t results_of(const Pool& pool) { return pool.batch * pool.axes[0].y * pool.axes[1].y * pool.axes[2].y; }
// Of x, that a window holds at most.
int64_t places_of(const Pool& pool) {
  int64_t places = 1;
  for (const PoolAxis& a : pool.axes) places *= std::min(a.kernel, a.x);
  return places;
}

bool is_untouched(const PoolAxis& a) { return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.x == a.y; }
bool is_whole(const PoolAxis& a) { return a.y == 1 && a.kernel - a.pad >= a.x; }

// Whether several threads of a plane pay: small ones that are no whole vectors would be read by elements.
bool sums_whole(int64_t places, const Pool& pool) {
  constexpr int64_t kSmall = 128;
  return places > kSmall || places * static_cast<int64_t>(size_of(pool.x.dtype)) % 16 == 0;
}

}  // namespace

const char* name_of(ForwardKernel kernel) {
  static constexpr const char* kNames[] = {"vectors", "whole", "shared", "columns", "any"};
  return kNames[static_cast<size_t>(kernel)];
}

ForwardChoice forward_choice(const Pool& pool, bool channels_last) {
  const auto& [d, h, w] = pool.axes;
  if (!channels_last && is_whole(h) && is_whole(w) && (is_whole(d) || is_untouched(d)) &&
      sums_whole(whole_planes(pool).places, pool))
    return {ForwardKernel::kWhole, {}};
  // Planes, and channels that are no whole vectors, would be read 2 or 4 bytes at a time by the others.
  const bool vectors = channels_last && pool.channels * static_cast<int64_t>(size_of(pool.x.dtype)) % 16 == 0;
  if (!vectors)
    if (const ColumnsCut cut = columns_cut(pool, channels_last, true); cut.planes > 0)
      return {ForwardKernel::kColumns, cut};
  const bool walks = vectors && vectors_cut(walked_down(pool), true).band > 0,
             many = results_of(pool) * vectors_of(pool) >=
                    kManyResults * std::min(d.kernel, d.x) * std::min(h.kernel, h.x);
  if (channels_last && places_of(pool) >= kManyPlaces && !(walks && many))
    return {ForwardKernel::kShared, {}};
  return {walks ? ForwardKernel::kVectors : ForwardKernel::kAny, {}};
}

int forward_vector(const Pool& pool, bool channels_last, int alignment) {
  const auto wide = static_cast<int>(16 / size_of(pool.x.dtype));
  return channels_last && pool.channels % wide == 0 && alignment >= 16 ? wide : 1;
}

SharedCut shared_cut(const Pool& pool) {
  const int64_t vectors = vectors_of(pool);
  const int most = vectors == pool.channels ? 32 : 8;  // 64 to 128 bytes side by side
  int lanes = 1;
  while (lanes < most && lanes < vectors) lanes *= 2;
  const int64_t blocks = results_of(pool) * ceil_div(vectors, int64_t{lanes});
  return {lanes, parts_of(blocks, places_of(pool), kThreads / lanes)};
}

WholePlanes whole_planes(const Pool& pool) {
  const bool volumes = is_whole(pool.axes[0]);
  WholePlanes whole{};
  whole.planes = pool.batch * pool.channels * (volumes ? 1 : pool.axes[0].x);
  whole.places = pool.axes[1].x * pool.axes[2].x * (volumes ? pool.axes[0].x : 1);
  whole.lanes = whole.places <= 128 ? 8 : whole.places <= 2048 ? 32 : 256;
  whole.parts =
      parts_of(whole.planes, whole.places, kThreads * static_cast<int64_t>(16 / size_of(pool.x.dtype)));
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

int64_t forward_sums(const Pool& pool, ForwardKernel kernel) {
  const auto sums = [](const WindowParts& parts, int64_t results) {
    return parts.count > 1 ? parts.count * results : 0;
  };
  if (kernel == ForwardKernel::kShared) return sums(shared_cut(pool).parts, results_of(pool) * pool.channels);
  if (kernel != ForwardKernel::kWhole) return 0;
  const WholePlanes whole = whole_planes(pool);
  return sums(whole.parts, whole.planes);
}

}  // namespace retrograd::kernels::cuda
