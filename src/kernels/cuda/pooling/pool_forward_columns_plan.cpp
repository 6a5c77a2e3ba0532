// SPDX-License-Identifier: Apache-2.0
// Tiles of y whose places of x shared memory has room for: the largest of those that give enough blocks.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/pooling/pool_forward_columns.h"

namespace retrograd::kernels::cuda {
namespace {

struct Lines {
  int64_t inner, planes, xw, yw, vector;
};
Lines lines_of(const Pool& pool, bool last) {
  const int64_t inner = last ? pool.channels : 1;
  return {inner, pool.batch * pool.axes[0].x * (last ? 1 : pool.channels), pool.axes[2].x * inner,
          pool.axes[2].y * inner, 16 / static_cast<int64_t>(size_of(pool.x.dtype))};
}
int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

// Places of `windows` neighbouring windows, at most.
int64_t places(const PoolAxis& a, int64_t windows) {
  return std::min(a.x, (windows - 1) * a.stride + a.kernel);
}

struct Memory {
  int64_t x_rows, x_columns, x_pitch, y_pitch, x_floats, bytes;
};
Memory memory_of(const Pool& pool, const Lines& l, const ForwardCut& cut) {
  const int64_t v = l.vector;
  const bool whole = cut.columns == l.yw;
  Memory m{};
  m.x_rows = cut.planes > 1 ? pool.axes[1].x : places(pool.axes[1], cut.rows);
  // Windows of a tile: one more where tiles begin among the channels of one.
  const int64_t windows =
      retrograd::ceil_div(int64_t{cut.columns}, l.inner) + (cut.columns % l.inner != 0 ? 1 : 0);
  m.x_columns = whole ? l.xw : l.inner * places(pool.axes[2], std::min(pool.axes[2].y, windows));
  // Chunks begin before a run and end behind it; neighbouring runs must not share one.
  m.x_pitch = whole ? l.xw : round_up(m.x_columns + 2 * v, v) + l.xw % v;
  m.y_pitch = whole ? l.yw : round_up(cut.columns, v) + l.yw % v;
  m.x_floats = round_up(2 * v + cut.planes * m.x_rows * m.x_pitch, 4);
  m.bytes = 4 * m.x_floats + 16 / v * (v + int64_t{cut.planes} * cut.rows * m.y_pitch);
  return m;
}

}  // namespace

ForwardCut forward_cut(const Pool& pool, bool channels_last) {
  constexpr double kEnoughBlocks = 600, kMostRead = 2.5;
  const PoolAxis &d = pool.axes[0], &h = pool.axes[1];
  ForwardCut best;
  if (d.kernel != 1 || d.stride != 1 || d.pad != 0 || d.x != d.y) return best;
  const Lines l = lines_of(pool, channels_last);
  double least = 0;
  // What is read and written of a result's share, more where there are too few blocks or threads without
  // work.
  const auto consider = [&](int64_t planes, int64_t rows, int64_t columns) {
    const ForwardCut cut{static_cast<int>(planes), static_cast<int>(rows), static_cast<int>(columns)};
    const Memory m = memory_of(pool, l, cut);
    if (m.bytes > kForwardBytes) return false;
    const auto number = [](int64_t n) { return static_cast<double>(n); };
    const double results = number(planes * rows * columns);
    const double staged = number(planes * m.x_rows * m.x_columns) / results,
                 own = number(h.x * l.xw) / number(h.y * l.yw);
    if (planes * rows * columns < h.y * l.yw && staged > kMostRead * own + 1) return true;
    const double blocks = number(retrograd::ceil_div(l.planes, planes) * retrograd::ceil_div(h.y, rows) *
                                 retrograd::ceil_div(l.yw, columns));
    const double idle = number(round_up(planes * rows * columns, kForwardThreads)) / results;
    const double cost = (staged + 1 + idle + 4000 / results) * std::max(1.0, kEnoughBlocks / blocks);
    if (best.planes == 0 || cost < least) {
      least = cost;
      best = cut;
    }
    return true;
  };
  const int64_t step = l.inner > 1 ? l.inner : 32;
  for (const int64_t about : {l.yw, 8 * step, 4 * step, 2 * step, step}) {
    const int64_t columns = std::min(about, l.yw);
    if (columns > kForwardBytes) continue;
    for (const int64_t rows : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64})
      if (!consider(1, std::min(rows, h.y), columns) || rows >= h.y) break;
    for (int64_t planes = 2; columns == l.yw && planes <= l.planes && planes <= 256; planes *= 2)
      if (h.y > 256 || !consider(planes, h.y, columns)) break;
  }
  return best;
}

ForwardColumns forward_columns_of(const Pool& pool, bool channels_last, const ForwardCut& cut) {
  const Lines l = lines_of(pool, channels_last);
  const Memory m = memory_of(pool, l, cut);
  const auto narrow = [](int64_t n) { return static_cast<int>(n); };
  const auto shift = [&](const void* data) {
    return narrow(static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % 16 / size_of(pool.x.dtype)));
  };
  const int64_t row_tiles = retrograd::ceil_div(pool.axes[1].y, int64_t{cut.rows}),
                column_tiles = retrograd::ceil_div(l.yw, int64_t{cut.columns});
  ForwardColumns p{};
  p.windows = windows_of(pool);
  p.inner = narrow(l.inner);
  p.xw = narrow(l.xw);
  p.yw = narrow(l.yw);
  p.planes = narrow(l.planes);
  p.whole = cut.columns == l.yw;
  p.vector = narrow(l.vector);
  p.x_shift = shift(pool.x.data);
  p.y_shift = shift(pool.y.data);
  p.cut = cut;
  p.x_pitch = narrow(m.x_pitch);
  p.y_pitch = narrow(m.y_pitch);
  p.x_floats = narrow(m.x_floats);
  p.bytes = narrow(m.bytes);
  p.channels = FastDiv(l.inner);
  p.row_tiles = FastDiv(row_tiles);
  p.column_tiles = FastDiv(column_tiles);
  p.tile_columns = FastDiv(cut.columns);
  p.tile_rows = FastDiv(cut.rows);
  p.blocks =
      static_cast<unsigned>(retrograd::ceil_div(l.planes, int64_t{cut.planes}) * row_tiles * column_tiles);
  return p;
}

}  // namespace retrograd::kernels::cuda
