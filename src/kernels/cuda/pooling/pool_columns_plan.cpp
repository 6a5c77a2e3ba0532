// SPDX-License-Identifier: Apache-2.0
// The cut with the fewest instructions a result, as counted from the code, that shared memory has room for.
#include "kernels/cuda/pooling/pool_columns_plan.h"

#include <algorithm>

#include "base/checked.h"

namespace retrograd::kernels::cuda {
namespace {

bool is_untouched(const PoolAxis& a) { return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.x == a.y; }
int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

// The pass without the cut.
struct Lines {
  int64_t inner, images, planes;  // planes: of x
  PoolAxis d, h, w;
  bool deep;
  int64_t xw, yw;            // elements
  int64_t reach_h, reach_w;  // windows that hold a place
  int64_t vector;
  int64_t strip, loads;  // of a walk: columns, and elements of a line of y
};

WalkKey key_of(const Lines& l) { return {l.w.kernel, l.w.stride, l.h.kernel, l.h.stride, l.inner}; }

Lines lines_of(const Pool& pool, bool last) {
  Lines l{};
  l.inner = last ? pool.channels : 1;
  l.images = last ? pool.batch : pool.batch * pool.channels;
  l.d = pool.axes[0];
  l.h = pool.axes[1];
  l.w = pool.axes[2];
  l.planes = l.images * l.d.x;
  l.deep = !is_untouched(l.d);
  if (!l.deep) {
    l.images = l.planes;
    l.d = {1, 1, 1, 1, 0};
  }
  if (!l.deep && is_untouched(l.h)) {  // lines of all planes are one plane's
    l.h.x = l.h.y = l.planes * l.h.x;
    l.images = l.planes = 1;
  }
  l.xw = l.w.x * l.inner;
  l.yw = l.w.y * l.inner;
  l.reach_h = retrograd::ceil_div(l.h.kernel, l.h.stride);
  l.reach_w = retrograd::ceil_div(l.w.kernel, l.w.stride);
  l.vector = 16 / static_cast<int64_t>(size_of(pool.x.dtype));
  with_walk_kind(key_of(l), [&](auto kind) {
    l.strip = kind.kColumns;
    l.loads = kind.kLoads;
  });
  return l;
}

// Windows that hold one of `places` neighbours, at most.
int64_t staged_windows(const PoolAxis& a, int64_t reach, int64_t places) {
  return std::min(a.y, (places - 1 + a.stride - 1) / a.stride + reach);
}

// Planes of y that hold `planes` neighbouring ones of x, at most.
int64_t staged_layers(const Lines& l, int64_t planes) {
  if (!l.deep) return planes;
  const auto layer = [&](int64_t plane,
                         int64_t kernel) {  // the first window that begins behind plane - kernel
    const int64_t behind = plane % l.d.x + l.d.pad - kernel;
    return plane / l.d.x * l.d.y + (behind < 0 ? 0 : std::min(l.d.y, behind / l.d.stride + 1));
  };
  int64_t most = 0;
  for (int64_t first = 0, tiles = 0; first < l.planes && tiles < l.d.x; first += planes, ++tiles)
    most = std::max(most, layer(std::min(first + planes, l.planes) - 1, 0) - layer(first, l.d.kernel));
  return most;
}

// Strips of a line of a tile, the first of which may begin before it.
int64_t strips_of(const Lines& l, const ColumnsCut& cut) {
  const int64_t before = cut.columns == l.xw ? l.w.pad % l.w.stride : l.w.stride - 1;
  return retrograd::ceil_div(cut.columns + (l.strip > 1 ? before : 0), l.strip);
}

struct Memory {
  int64_t layers, y_rows, y_columns;  // staged, at most
  int64_t y_line, y_staged, x_line, y_floats, bytes;
};

Memory memory_of(const Lines& l, const ColumnsCut& cut) {
  const int64_t v = l.vector;
  // Chunks begin before a run and end behind it; neighbouring runs must not share one.
  const auto line = [&](int64_t length, int64_t least) { return round_up(least, v) + length % v; };
  const bool whole = cut.columns == l.xw;
  Memory m{};
  m.layers = staged_layers(l, cut.planes);
  m.y_rows = cut.planes > 1 ? l.h.y : staged_windows(l.h, l.reach_h, cut.rows);
  // Places of a tile: one more where tiles begin among the channels of one.
  const int64_t places =
      retrograd::ceil_div(int64_t{cut.columns}, l.inner) + (cut.columns % l.inner != 0 ? 1 : 0);
  m.y_columns = whole ? l.yw : l.inner * staged_windows(l.w, l.reach_w, std::min(l.w.x, places));
  m.y_line = whole ? l.yw : line(l.yw, m.y_columns + 2 * v);
  m.y_staged = m.y_rows * m.y_line;
  if (l.deep && cut.planes == 1) m.y_staged = line(l.h.y * l.yw, m.y_staged + 2 * v);
  m.x_line = whole ? l.xw : line(l.xw, cut.columns);
  m.y_floats = round_up(2 * v + m.layers * m.y_staged, 4) + 2 * kStripMargin;
  m.bytes = 4 * m.y_floats + 16 / v * (v + int64_t{cut.planes} * cut.rows * m.x_line);
  return m;
}

int64_t blocks_of(const Lines& l, const ColumnsCut& cut) {
  return retrograd::ceil_div(l.planes, int64_t{cut.planes}) * retrograd::ceil_div(l.h.x, int64_t{cut.rows}) *
         retrograd::ceil_div(l.xw, int64_t{cut.columns});
}

// Instructions of a block's threads a result.
double cost_of(const Lines& l, const ColumnsCut& cut, const Memory& m) {
  constexpr double kStage = 3, kFlush = 1, kBlock = 150, kEnoughBlocks = 1200, kBlocksAtOnce = 10;
  constexpr double kCutLines = 1.35;  // whose ends share sectors of memory with neighbouring tiles
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const int64_t threads = kColumnsThreads;
  const double results = number(int64_t{cut.planes} * cut.rows * cut.columns);
  const double staged = number(round_up(m.layers * m.y_rows * m.y_columns, threads * l.vector));
  const double flushed = number(round_up(int64_t{cut.planes} * cut.rows * cut.columns, threads * l.vector));
  const int64_t bands = retrograd::ceil_div(cut.rows, cut.band);
  const double walks = number(round_up(cut.planes * bands * strips_of(l, cut), threads));
  const int64_t lines = retrograd::ceil_div(int64_t{cut.band}, l.h.stride) + l.reach_h - 1;
  const double depths = number(retrograd::ceil_div(l.d.kernel, l.d.stride));
  const double line =
      2 * depths * number(l.loads) + number(l.strip * (l.reach_w + l.reach_h + 4)) + 8 * depths;
  const double walk = 60 + number(lines) * line + number(cut.band * (l.strip + 3));
  const double instructions =
      kStage * staged + kFlush * flushed + walks * walk + kBlock * static_cast<double>(threads);
  const double at_once = std::clamp(220.0 * 1024 / number(m.bytes + 1024), 1.0, kBlocksAtOnce);
  return instructions / results * (cut.columns == l.xw ? 1 : kCutLines) * (1 + 4 / at_once) *
         std::max(1.0, kEnoughBlocks / number(blocks_of(l, cut)));
}

}  // namespace

ColumnsCut columns_cut(const Pool& pool, bool channels_last) {
  const Lines l = lines_of(pool, channels_last);
  ColumnsCut best;
  if (l.reach_h > kColumnsReach || l.reach_w > kColumnsReach) return best;
  // Channels in lines: a tile of a few stages all of a window's, again and again.
  constexpr int64_t kMostStaged = 3;
  double least = 0;
  const auto try_rows = [&](int64_t columns, int64_t rows, int64_t planes) {
    for (const int64_t bands : {1, 2, 3, 4, 6, 8, 16}) {
      int64_t band = retrograd::ceil_div(rows, bands);
      if (l.h.stride < rows) band = std::min(rows, round_up(band, l.h.stride));
      const ColumnsCut cut{static_cast<int>(planes), static_cast<int>(rows), static_cast<int>(columns),
                           static_cast<int>(band)};
      const Memory memory = memory_of(l, cut);
      if (memory.bytes > kColumnsBytes) return false;
      if (l.inner > 1 && memory.y_rows * memory.y_columns > kMostStaged * rows * columns) return true;
      const double cost = cost_of(l, cut, memory);
      if (best.planes == 0 || cost < least) {
        least = cost;
        best = cut;
      }
    }
    return true;
  };
  const int64_t places[] = {8 * l.inner, 4 * l.inner, 2 * l.inner, l.inner};
  const int64_t elements[] = {1024, 512, 256, 64};
  for (int i = 0; i <= 4; ++i) {
    const int64_t wanted = i == 0 ? l.xw : l.inner > 1 ? places[i - 1] : elements[i - 1];
    if (wanted > l.xw || wanted > kColumnsBytes) continue;
    int64_t columns = wanted;
    if (l.inner == 1 && i > 0)  // tiles of about one size
      columns = std::min(l.xw, round_up(retrograd::ceil_div(l.xw, retrograd::ceil_div(l.xw, wanted)), 16));
    for (const int64_t about : {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512}) {
      const int64_t even =
          retrograd::ceil_div(l.h.x, retrograd::ceil_div(l.h.x, about));  // tiles of about one size
      const int64_t rows = std::min(l.h.x, l.h.stride < even ? round_up(even, l.h.stride) : even);
      if (!try_rows(columns, rows, 1)) break;
      if (rows == l.h.x) break;
    }
    if (columns != l.xw || l.h.x > 128) continue;
    for (int64_t planes = 2; planes <= l.planes && planes <= 512; planes *= 2)
      if (!try_rows(columns, l.h.x, planes)) break;
    for (int64_t planes = l.d.x; l.d.x > 1 && planes <= l.planes && planes <= 512; planes *= 2)  // volumes
      if (!try_rows(columns, l.h.x, planes)) break;
  }
  return best;
}

PoolColumns columns_of(const Pool& pool, bool channels_last, const ColumnsCut& cut) {
  const Lines l = lines_of(pool, channels_last);
  const Memory m = memory_of(l, cut);
  const auto narrow = [](int64_t n) { return static_cast<int>(n); };
  PoolColumns p{};
  p.windows = windows_of(pool);
  if (!l.deep) p.windows.axes[0] = {1, 1, 1, 1, 0, 0, 1};
  if (!l.deep && is_untouched(l.h))
    p.windows.axes[1] = {narrow(l.h.x), narrow(l.h.x), 1, 1, 0, 0, narrow(l.h.x)};
  p.strides[0] = FastDiv(l.d.stride);
  p.strides[1] = FastDiv(l.h.stride);
  p.strides[2] = FastDiv(l.w.stride);
  p.inner = narrow(l.inner);
  p.xw = narrow(l.xw);
  p.yw = narrow(l.yw);
  p.x_plane = narrow(l.h.x * l.xw);
  p.y_plane = narrow(l.h.y * l.yw);
  p.x_total = narrow(l.planes * l.h.x * l.xw);
  p.y_total = narrow(l.images * l.d.y * l.h.y * l.yw);
  p.planes = narrow(l.planes);
  p.reach_h = narrow(l.reach_h);
  p.reach_w = narrow(l.reach_w);
  p.split_h = narrow(l.h.kernel - (l.reach_h - 1) * l.h.stride);
  p.cut = cut;
  p.whole = cut.columns == l.xw;
  p.deep = l.deep;
  p.divide = !p.windows.uniform && (l.deep || l.strip == 1);
  p.vector = narrow(l.vector);
  const auto shift = [&](const void* data) {
    return narrow(static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % 16 / size_of(pool.x.dtype)));
  };
  p.x_shift = shift(pool.x.data);
  p.y_shift = shift(pool.y.data);
  p.y_line = narrow(m.y_line);
  p.y_staged = narrow(m.y_staged);
  p.x_line = narrow(m.x_line);
  p.y_floats = narrow(m.y_floats);
  p.bytes = narrow(m.bytes);
  p.channels = FastDiv(l.inner);
  p.depths = FastDiv(l.d.x);
  p.y_depths = FastDiv(l.d.y);
  const int64_t row_tiles = retrograd::ceil_div(l.h.x, int64_t{cut.rows}),
                column_tiles = retrograd::ceil_div(l.xw, int64_t{cut.columns});
  p.row_tiles = FastDiv(row_tiles);
  p.column_tiles = FastDiv(column_tiles);
  p.strips = FastDiv(strips_of(l, cut));
  p.bands = FastDiv(retrograd::ceil_div(cut.rows, cut.band));
  p.staged_columns = FastDiv(std::max(m.y_columns, int64_t{1}));
  p.staged_lines = FastDiv(std::max(m.y_rows, int64_t{1}));
  p.blocks =
      static_cast<unsigned>(retrograd::ceil_div(l.planes, int64_t{cut.planes}) * row_tiles * column_tiles);
  return p;
}

}  // namespace retrograd::kernels::cuda
