// SPDX-License-Identifier: Apache-2.0
// Tiles of y whose places of x shared memory has room for: the one with the fewest instructions a result, as
// counted from the code.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/pooling/pool_forward_columns.h"

namespace retrograd::kernels::cuda {
namespace {

using retrograd::ceil_div;

// The pass without the cut.
struct Lines {
  int64_t inner, x_planes, planes;  // planes: of y
  PoolAxis d, h, w;
  bool deep;
  int64_t xw, yw, vector;
  int64_t strip, held;  // of a walk: windows, and places of a line of x
};

bool is_untouched(const PoolAxis& a) { return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.x == a.y; }
int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

Lines lines_of(const Pool& pool, bool last) {
  Lines l{};
  l.inner = last ? pool.channels : 1;
  l.d = pool.axes[0];
  l.h = pool.axes[1];
  l.w = pool.axes[2];
  const int64_t images = last ? pool.batch : pool.batch * pool.channels;
  l.x_planes = images * l.d.x;
  l.planes = images * l.d.y;
  l.deep = !is_untouched(l.d);
  if (!l.deep) l.d = {1, 1, 1, 1, 0};
  if (!l.deep && is_untouched(l.h)) {  // lines of all planes are one plane's
    l.h.x = l.h.y = l.planes * l.h.x;
    l.x_planes = l.planes = 1;
  }
  l.xw = l.w.x * l.inner;
  l.yw = l.w.y * l.inner;
  l.vector = 16 / static_cast<int64_t>(size_of(pool.x.dtype));
  with_walk_kind({l.w.kernel, l.w.stride, l.h.kernel, l.h.stride, l.inner}, [&](auto kind) {
    l.strip = kind.kIsStrip ? kind.kWindows : 1;
    l.held = kind.kIsStrip ? kind.kHeld : l.w.kernel;
  });
  return l;
}

// Places of `windows` neighbouring windows, at most.
int64_t places(const PoolAxis& a, int64_t windows) {
  return std::min(a.x, (windows - 1) * a.stride + a.kernel);
}

// Planes of x that `planes` neighbouring ones of y hold, at most.
int64_t held_layers(const Lines& l, int64_t planes) {
  if (!l.deep) return planes;
  const auto layer = [&](int64_t plane, int64_t place) {
    const int64_t at = plane % l.d.y * l.d.stride - l.d.pad + place;
    return plane / l.d.y * l.d.x + std::clamp(at, int64_t{0}, l.d.x);
  };
  int64_t most = 0;
  for (int64_t first = 0, tiles = 0; first < l.planes && tiles < l.d.y; first += planes, ++tiles)
    most = std::max(most, layer(std::min(first + planes, l.planes) - 1, l.d.kernel) - layer(first, 0));
  return most;
}

struct Memory {
  int64_t layers, x_rows, x_columns, x_pitch, x_layer, y_pitch, x_floats, bytes;
};
Memory memory_of(const Lines& l, const ForwardCut& cut) {
  const int64_t v = l.vector;
  const bool whole = cut.columns == l.yw;
  // Chunks begin before a run and end behind it; neighbouring runs must not share one.
  const auto pitch = [&](int64_t length, int64_t least) { return round_up(least, v) + length % v; };
  Memory m{};
  m.layers = held_layers(l, cut.planes);
  m.x_rows = cut.planes > 1 ? l.h.x : places(l.h, cut.rows);
  // Windows of a tile: one more where tiles begin among the channels of one.
  const int64_t windows = ceil_div(int64_t{cut.columns}, l.inner) + (cut.columns % l.inner != 0 ? 1 : 0);
  m.x_columns = whole ? l.xw : l.inner * places(l.w, std::min(l.w.y, windows));
  m.x_pitch = whole ? l.xw : pitch(l.xw, m.x_columns + 2 * v);
  m.x_layer = m.x_rows * m.x_pitch;
  if (l.deep && cut.planes == 1) m.x_layer = pitch(l.h.x * l.xw, m.x_layer + 2 * v);
  m.y_pitch = whole ? l.yw : pitch(l.yw, cut.columns);
  m.x_floats = round_up(2 * v + m.layers * m.x_layer, 4) + 2 * kStripMargin;
  m.bytes = 4 * m.x_floats + 16 / v * (v + int64_t{cut.planes} * cut.rows * m.y_pitch);
  return m;
}

// Instructions of a block's threads a result; what is read twice counts as much as what it costs to read.
double cost_of(const Lines& l, const ForwardCut& cut, const Memory& m) {
  constexpr double kStage = 4, kFlush = 1, kBlock = 150, kEnoughBlocks = 1200, kBlocksAtOnce = 10;
  constexpr double kCutLines = 1.35;  // whose ends share sectors of memory with neighbouring tiles
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const int64_t threads = kForwardThreads;
  const int64_t own = int64_t{cut.planes} * cut.rows * cut.columns;
  const double staged = number(round_up(m.layers * m.x_rows * m.x_columns, threads * l.vector));
  const double flushed = number(round_up(own, threads * l.vector));
  const double walks = number(
      round_up(cut.planes * ceil_div(cut.rows, cut.band) * ceil_div(int64_t{cut.columns}, l.strip), threads));
  const double depths = number(std::min(l.d.kernel, l.d.x));
  double walk = 0;
  if (l.strip > 1) {
    const int64_t reach = ceil_div(l.h.kernel, l.h.stride), lines = (cut.band + reach - 1) * l.h.stride;
    walk = 60 + number(lines) * ((1 + depths) * number(l.held) + number(l.strip * (l.w.kernel + reach)) + 8) +
           number(cut.band * (3 * l.strip + 8));
  } else {
    const double kernel_h = number(std::min(l.h.kernel, l.h.x)),
                 kernel_w = number(std::min(l.w.kernel, l.w.x));
    walk = 60 + cut.band * (20 + depths * kernel_h * (6 + 2.5 * kernel_w));
  }
  const double blocks = number(ceil_div(l.planes, int64_t{cut.planes}) * ceil_div(l.h.y, int64_t{cut.rows}) *
                               ceil_div(l.yw, int64_t{cut.columns}));
  const double at_once = std::clamp(220.0 * 1024 / number(m.bytes + 1024), 1.0, kBlocksAtOnce);
  return (kStage * staged + kFlush * flushed + walks * walk + kBlock * number(threads)) / number(own) *
         (cut.columns == l.yw ? 1 : kCutLines) * (1 + 4 / at_once) * std::max(1.0, kEnoughBlocks / blocks);
}

}  // namespace

ForwardCut forward_cut(const Pool& pool, bool channels_last) {
  constexpr int64_t kMostRead = 3;  // of what is a tile's own
  const Lines l = lines_of(pool, channels_last);
  ForwardCut best;
  double least = 0;
  const auto consider = [&](int64_t planes, int64_t rows, int64_t columns) {
    for (const int64_t bands : {1, 2, 3, 4, 6, 8, 16}) {
      const ForwardCut cut{static_cast<int>(planes), static_cast<int>(rows), static_cast<int>(columns),
                           static_cast<int>(ceil_div(rows, bands))};
      const Memory m = memory_of(l, cut);
      if (m.bytes > kForwardBytes) return false;
      const int64_t own = planes * rows * columns, all = l.planes * l.h.y * l.yw;
      if (own < all &&
          m.layers * m.x_rows * m.x_columns > kMostRead * (l.x_planes * l.h.x * l.xw * own / all + own))
        return true;
      const double cost = cost_of(l, cut, m);
      if (best.planes == 0 || cost < least) {
        least = cost;
        best = cut;
      }
      if (bands >= rows) break;
    }
    return true;
  };
  const int64_t step = l.inner > 1 ? l.inner : 32;
  for (const int64_t about : {l.yw, 16 * step, 8 * step, 4 * step, 2 * step, step}) {
    if (about > l.yw || about > kForwardBytes) continue;
    const int64_t columns =
        about == l.yw || l.inner > 1 ? about : round_up(ceil_div(l.yw, ceil_div(l.yw, about)), 8);
    if (columns > l.yw) continue;
    for (const int64_t rows : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256}) {
      const int64_t even = ceil_div(l.h.y, ceil_div(l.h.y, rows));  // tiles of about one size
      if (!consider(1, even, columns) || rows >= l.h.y) break;
    }
    if (columns != l.yw || l.h.y > 256) continue;
    for (int64_t planes = 2; planes <= l.planes && planes <= 512; planes *= 2)
      if (!consider(planes, l.h.y, columns)) break;
    for (int64_t planes = l.d.y; l.d.y > 1 && planes <= l.planes && planes <= 512; planes *= 2)  // volumes
      if (!consider(planes, l.h.y, columns)) break;
  }
  return best;
}

ForwardColumns forward_columns_of(const Pool& pool, bool channels_last, const ForwardCut& cut) {
  const Lines l = lines_of(pool, channels_last);
  const Memory m = memory_of(l, cut);
  const auto narrow = [](int64_t n) { return static_cast<int>(n); };
  const auto shift = [&](const void* data) {
    return narrow(static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % 16 / size_of(pool.x.dtype)));
  };
  const int64_t row_tiles = ceil_div(l.h.y, int64_t{cut.rows}),
                column_tiles = ceil_div(l.yw, int64_t{cut.columns});
  ForwardColumns p{};
  p.windows = windows_of(pool);
  if (!l.deep) p.windows.axes[0] = {1, 1, 1, 1, 0, 0, 1};
  if (!l.deep && is_untouched(l.h)) {
    const int lines = narrow(l.h.x);
    p.windows.axes[1] = {lines, lines, 1, 1, 0, 0, lines};
  }
  p.inner = narrow(l.inner);
  p.xw = narrow(l.xw);
  p.yw = narrow(l.yw);
  p.x_planes = narrow(l.x_planes);
  p.planes = narrow(l.planes);
  p.whole = cut.columns == l.yw;
  p.deep = l.deep;
  p.vector = narrow(l.vector);
  p.x_shift = shift(pool.x.data);
  p.y_shift = shift(pool.y.data);
  p.cut = cut;
  p.x_pitch = narrow(m.x_pitch);
  p.x_layer = narrow(m.x_layer);
  p.y_pitch = narrow(m.y_pitch);
  p.x_floats = narrow(m.x_floats);
  p.bytes = narrow(m.bytes);
  p.channels = FastDiv(l.inner);
  p.depths = FastDiv(l.d.y);
  p.row_tiles = FastDiv(row_tiles);
  p.column_tiles = FastDiv(column_tiles);
  p.strips = FastDiv(ceil_div(int64_t{cut.columns}, l.strip));
  p.bands = FastDiv(ceil_div(int64_t{cut.rows}, int64_t{cut.band}));
  p.blocks = static_cast<unsigned>(ceil_div(l.planes, int64_t{cut.planes}) * row_tiles * column_tiles);
  return p;
}

}  // namespace retrograd::kernels::cuda
