// SPDX-License-Identifier: Apache-2.0
// The cut that takes the least time, as told from the instructions of the code and the bytes that it moves,
// of those that shared memory has room for.
#include "kernels/cuda/pooling/pool_columns_plan.h"

#include <algorithm>

#include "base/checked.h"

namespace retrograd::kernels::cuda {
namespace {

bool is_untouched(const PoolAxis& a) { return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.x == a.y; }
int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }
double number(int64_t n) { return static_cast<double>(n); }

// The pass without the cut.
struct Lines {
  bool forward, deep;
  int64_t inner, images;
  PoolAxis d, h, w;
  int64_t s_depths, s_rows, s_width, planes, rows, width;  // of the source, of the result
  int64_t s_line, r_line, vector;
  bool strips;
  int64_t unit_h, unit_w, phase_h, phase_w, steps, strips_of_line;
  int64_t loads, lines,
      reach;  // of a strip: elements of a line of the source; lines of a step; steps of a window
};

Lines lines_of(const Pool& pool, bool last, bool forward) {
  Lines l{};
  l.forward = forward;
  l.inner = last ? pool.channels : 1;
  l.images = last ? pool.batch : pool.batch * pool.channels;
  l.d = pool.axes[0];
  l.h = pool.axes[1];
  l.w = pool.axes[2];
  l.deep = !is_untouched(l.d);
  if (!l.deep) {
    l.images *= l.d.x;
    l.d = {1, 1, 1, 1, 0};
  }
  if (!l.deep && is_untouched(l.h)) {  // lines of all planes are one plane's
    l.h.x = l.h.y = l.images * l.h.x;
    l.images = 1;
  }
  l.s_depths = forward ? l.d.x : l.d.y;
  l.s_rows = forward ? l.h.x : l.h.y;
  l.s_width = forward ? l.w.x : l.w.y;
  l.planes = l.images * (forward ? l.d.y : l.d.x);
  l.rows = forward ? l.h.y : l.h.x;
  l.width = forward ? l.w.y : l.w.x;
  l.s_line = l.s_width * l.inner;
  l.r_line = l.width * l.inner;
  l.vector = 16 / static_cast<int64_t>(size_of(pool.x.dtype));
  l.unit_h = l.unit_w = 1;
  const auto take = [&](auto kind) {
    using Kind = decltype(kind);
    if constexpr (Kind::kIsStrip) {
      l.strips = true;
      l.unit_h = Kind::H::kResults;
      l.unit_w = Kind::W::kResults;
      l.phase_h = forward ? 0 : l.h.pad % l.h.stride;
      l.phase_w = forward ? 0 : l.w.pad % l.w.stride;
      l.loads = Kind::W::kSources;
      l.lines = forward ? std::min(Kind::H::kS, Kind::H::kK) : 1;
      l.reach = Kind::H::kReach;
    }
  };
  const WindowKey key{forward, true, l.h.kernel, l.h.stride, l.w.kernel, l.w.stride, l.inner};
  l.vector == 8 ? with_kind<2>(key, take) : with_kind<4>(key, take);
  l.steps = ceil_div(l.rows + l.phase_h, l.unit_h);
  l.strips_of_line = ceil_div(l.r_line + l.phase_w, l.unit_w);
  return l;
}

// Sources that `results` neighbours add along an axis, at most.
int64_t sources_of(const Lines& l, const PoolAxis& a, int64_t results) {
  return l.forward ? std::min(a.x, (results - 1) * a.stride + a.kernel)
                   : std::min(a.y, ceil_div(results - 1, a.stride) + ceil_div(a.kernel, a.stride));
}

// Planes of the source that `planes` neighbouring ones of the result add, at most.
int64_t layers_of(const Lines& l, int64_t planes) {
  if (!l.deep) return planes;
  const int64_t depths = l.planes / l.images;
  const auto layer = [&](int64_t plane, bool end) {
    const int64_t at = plane % depths;
    int64_t source;
    if (l.forward) {
      source = at * l.d.stride - l.d.pad + (end ? l.d.kernel : 0);
    } else {
      const int64_t behind = at + l.d.pad - (end ? 0 : l.d.kernel);
      source = behind < 0 ? 0 : behind / l.d.stride + 1;
    }
    return plane / depths * l.s_depths + std::clamp(source, int64_t{0}, l.s_depths);
  };
  int64_t most = 0;
  for (int64_t first = 0, tiles = 0; first < l.planes && tiles < depths; first += planes, ++tiles)
    most = std::max(most, layer(std::min(first + planes, l.planes) - 1, true) - layer(first, false));
  return most;
}

struct Memory {
  int64_t rows, columns;              // of the result, at most
  int64_t layers, s_rows, s_columns;  // staged, at most
  int64_t s_pitch, s_layer, r_pitch, r_layer;
  int64_t sums_at, results_at, bytes;
};

// `layers`: layers_of() its planes.
Memory memory_of(const Lines& l, const ColumnsCut& cut, int64_t layers) {
  const int64_t v = l.vector, size = 16 / v;
  // Chunks begin before a run and end behind it; neighbouring runs must not share one.
  const auto pitch = [&](int64_t step, int64_t least) { return round_up(least, v) + step % v; };
  const bool whole = cut.strips >= l.strips_of_line, all = cut.steps >= l.steps;
  Memory m{};
  m.rows = std::min(l.rows, cut.steps * l.unit_h);
  m.columns = std::min(l.r_line, cut.strips * l.unit_w);
  m.layers = layers;
  m.s_rows = all ? l.s_rows : sources_of(l, l.h, m.rows);
  // Places of a tile: one more where tiles begin among the channels of one.
  const int64_t places = ceil_div(m.columns, l.inner) + (m.columns % l.inner != 0 ? 1 : 0);
  m.s_columns = whole ? l.s_line : l.inner * sources_of(l, l.w, std::min(l.width, places));
  m.s_pitch = whole ? l.s_line : pitch(l.s_line, m.s_columns + 2 * v);
  m.s_layer = whole && all ? l.s_rows * l.s_line : pitch(l.s_rows * l.s_line, m.s_rows * m.s_pitch + 2 * v);
  m.r_pitch = whole ? l.r_line : pitch(l.r_line, m.columns);
  m.r_layer = whole && all ? l.rows * l.r_line : pitch(l.rows * l.r_line, m.rows * m.r_pitch);
  const int64_t staged = 2 * v + m.layers * m.s_layer + 2 * kStripMargin;
  const int64_t floats =
      l.strips ? std::max(m.s_columns, m.columns) + 2 * kStripMargin : cut.planes * m.rows * m.s_columns;
  m.sums_at = round_up(staged * size, 16);
  m.results_at = m.sums_at + round_up(floats * 4, 16);
  m.bytes = m.results_at + (2 * v + cut.planes * m.r_layer) * size;
  return m;
}

int64_t blocks_of(const Lines& l, const ColumnsCut& cut) {
  return ceil_div(l.planes, int64_t{cut.planes}) * ceil_div(l.steps, int64_t{cut.steps}) *
         ceil_div(l.strips_of_line, int64_t{cut.strips});
}

// Words that the lanes of a warp read, or write, of one bank of shared memory at most: an access takes as
// many cycles. across, down, deep: bytes between neighbouring strips, bands and planes.
int64_t conflicts(int64_t strips, int64_t bands, int64_t planes, int64_t across, int64_t down, int64_t deep) {
  constexpr int kLanes = 32, kBanks = 32;
  int64_t seen[kBanks][kLanes];
  int counts[kBanks] = {}, most = 1;
  int64_t strip = 0, band = 0, plane = 0;
  for (int lane = 0; lane < kLanes && plane < planes; ++lane) {
    const int64_t word = (strip * across + band * down + plane * deep) / 4;
    auto& bank = seen[word % kBanks];
    int& count = counts[word % kBanks];
    if (std::find(bank, bank + count, word) == bank + count) bank[count++] = word;
    most = std::max(most, count);
    if (++strip == strips) {
      strip = 0;
      if (++band == bands) {
        band = 0;
        ++plane;
      }
    }
  }
  return most;
}

// Cycles of a multiprocessor a result. Instructions, accesses to shared memory and bytes are counted;
// together they take as long as the largest part and some of the others.
double cost_of(const Lines& l, const ColumnsCut& cut, const Memory& m) {
  constexpr double kBlock = 150, kStage = 9, kFlush = 10;     // instructions: of a thread; of a chunk
  constexpr double kEnds = 50;                                // where a warp has ends of runs
  constexpr double kIssue = 77, kBytes = 17, kAccesses = 32;  // of a cycle
  constexpr double kProcessors = 132, kBlocksAtOnce = 8, kRest = 0.3;
  constexpr double kCutLines = 1.5;  // whose ends are written by elements and share sectors with other tiles
  const int64_t threads = kColumnsThreads;
  const auto turns = [&](int64_t items) { return number(ceil_div(items, threads)); };
  const int64_t staged = m.layers * m.s_rows * m.s_columns, own = cut.planes * m.rows * m.columns;
  const int64_t bands = ceil_div(int64_t{cut.steps}, int64_t{cut.band}), size = 16 / l.vector;
  const double depths = number(sources_of(l, l.d, 1));
  const bool whole = m.s_columns == l.s_line, one_run = whole && (m.rows == l.rows || cut.planes == 1);
  double work = 0, accesses = 0;  // of a thread
  if (l.strips) {
    const double line = number(l.loads) * (1 + 2 * depths) + number(l.unit_w) * 2 + 10;
    const double step = number(l.lines) * line + number(l.unit_w * (l.reach + 2 * l.unit_h)) + 8;
    const double walks = turns(cut.planes * bands * cut.strips);
    work = walks * (90 + number(l.reach - 1) * number(l.lines) * line + number(cut.band) * step);
    const int64_t s_step = l.forward ? l.h.stride : 1, s_strip = l.forward ? l.w.stride : 1,
                  strip = l.forward ? l.unit_w : l.unit_w / l.w.stride, d_step = l.forward ? l.d.stride : 1;
    const int64_t apart = l.reach == 1 ? 1 : cut.band;  // steps of neighbouring bands
    const int64_t reads = conflicts(cut.strips, bands, cut.planes, strip * s_strip * size,
                                    apart * s_step * m.s_pitch * size, d_step * m.s_layer * size);
    const int64_t writes = conflicts(cut.strips, bands, cut.planes, l.unit_w * size,
                                     apart * l.unit_h * m.r_pitch * size, m.r_layer * size);
    accesses = walks * (number(cut.band + l.reach - 1) * number(l.lines * l.loads * reads) * depths +
                        number(cut.band * l.unit_h * l.unit_w * writes));
  } else {
    const double down = 12 + 5.5 * depths * number(sources_of(l, l.h, 1)) /
                                 (l.forward ? 1 : number(std::max(int64_t{1}, l.h.stride)));
    work = turns(cut.planes * bands * m.s_columns) * (60 + number(cut.band) * down) +
           turns(cut.planes * bands * m.columns) *
               (60 + number(cut.band) * (14 + 3 * number(sources_of(l, l.w, 1))));
  }
  const double instructions =
      number(threads) * (kBlock + kStage * turns(ceil_div(staged, l.vector)) + work +
                         (one_run ? kFlush : kFlush + kEnds) * turns(ceil_div(own, l.vector)));
  const double bytes = number((staged + own) * size);
  const double parts[] = {instructions / kIssue, number(threads) * accesses / kAccesses, bytes / kBytes};
  const double largest = *std::max_element(parts, parts + 3), sum = parts[0] + parts[1] + parts[2];
  const double at_once = std::clamp(220.0 * 1024 / number(m.bytes + 1024), 1.0, kBlocksAtOnce);
  // The first blocks of a processor load at the same time, the last ones write.
  const double waves = number(blocks_of(l, cut)) / (kProcessors * at_once);
  return (largest + kRest * (sum - largest)) / number(own) * (1 + 4 / at_once) * (1 + 1 / waves) *
         (whole ? 1 : kCutLines);
}

}  // namespace

bool is_too_deep(const Pool& pool, bool forward) {
  const PoolAxis& d = pool.axes[0];
  return !is_untouched(d) && (forward ? d.y : d.x) > kColumnsDepths;
}

ColumnsCut columns_cut(const Pool& pool, bool channels_last, bool forward) {
  const Lines l = lines_of(pool, channels_last, forward);
  if (is_too_deep(pool, forward)) return {};
  // Of what is a tile's own; channels in lines: a tile of a few stages all of a window's, again and again.
  constexpr int64_t kMostStaged = 3;
  const int64_t source = l.images * l.s_depths * l.s_rows * l.s_line, result = l.planes * l.rows * l.r_line;
  ColumnsCut best;
  double least = 0;
  int64_t last_planes = 0, layers = 0;
  const auto consider = [&](int64_t planes, int64_t steps, int64_t strips) {
    if (planes != last_planes) layers = layers_of(l, planes);
    last_planes = planes;
    for (const int64_t bands : {1, 2, 3, 4, 6, 8, 16}) {
      const ColumnsCut cut{static_cast<int>(planes), static_cast<int>(steps), static_cast<int>(strips),
                           static_cast<int>(ceil_div(steps, bands))};
      const Memory m = memory_of(l, cut, layers);
      if (m.bytes > kColumnsBytes) return false;
      const int64_t own = planes * m.rows * m.columns;
      if (blocks_of(l, cut) > 1 &&
          number(m.layers * m.s_rows * m.s_columns) >
              number(kMostStaged) * (number(source) * number(own) / number(result) + number(own)))
        return true;
      const double cost = cost_of(l, cut, m);
      if (best.planes == 0 || cost < least) {
        least = cost;
        best = cut;
      }
      if (bands >= steps) break;
    }
    return true;
  };
  const int64_t unit = l.inner > 1 ? l.inner : 64;
  for (const int64_t about : {l.r_line, 16 * unit, 8 * unit, 4 * unit, 2 * unit, unit}) {
    if (about > l.r_line || about > kColumnsBytes) continue;
    const int64_t tiles = ceil_div(l.r_line, about);  // of about one size
    const int64_t strips = tiles == 1    ? l.strips_of_line
                           : l.inner > 1 ? about
                                         : ceil_div(l.strips_of_line, tiles);
    for (int64_t planes = 1; planes <= (l.deep ? 8 : 1); planes *= 2)
      for (const int64_t rows : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512}) {
        const int64_t steps = ceil_div(l.steps, ceil_div(l.steps, rows));
        if (!consider(planes, steps, strips) || rows >= l.steps) break;
      }
    if (tiles > 1 || l.steps > 256) continue;
    for (int64_t planes = 2; planes <= l.planes && planes <= 512; planes *= 2)
      if (!consider(planes, l.steps, strips)) break;
    const int64_t depths = l.planes / l.images;
    for (int64_t planes = depths; depths > 1 && planes <= l.planes && planes <= 512; planes *= 2)  // volumes
      if (!consider(planes, l.steps, strips)) break;
  }
  return best;
}

PoolColumns columns_of(const Pool& pool, bool channels_last, bool forward, const ColumnsCut& cut) {
  const Lines l = lines_of(pool, channels_last, forward);
  const Memory m = memory_of(l, cut, layers_of(l, cut.planes));
  const auto narrow = [](int64_t n) { return static_cast<int>(n); };
  const auto shift = [&](const void* data) {
    return narrow(static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % 16 / size_of(pool.x.dtype)));
  };
  PoolColumns p{};
  p.windows = windows_of(pool);
  if (!l.deep) p.windows.axes[0] = {1, 1, 1, 1, 0, 0, 1};
  if (!l.deep && is_untouched(l.h))
    p.windows.axes[1] = {narrow(l.h.x), narrow(l.h.x), 1, 1, 0, 0, narrow(l.h.x)};
  p.strides[0] = FastDiv(l.d.stride);
  p.strides[1] = FastDiv(l.h.stride);
  p.strides[2] = FastDiv(l.w.stride);
  p.whole = cut.strips >= l.strips_of_line;
  p.deep = l.deep;
  p.divide = !p.windows.uniform;
  p.edges = forward ? l.w.pad > 0 || (l.w.y - 1) * l.w.stride + l.w.kernel > l.w.x
                    : l.w.kernel > l.w.stride || (l.w.x - 1 + l.w.pad) / l.w.stride >= l.w.y;
  p.inner = narrow(l.inner);
  p.source.line = narrow(l.s_line);
  p.result.line = narrow(l.r_line);
  p.s_rows = narrow(l.s_rows);
  p.s_width = narrow(l.s_width);
  p.source.plane = narrow(l.s_rows * l.s_line);
  p.result.plane = narrow(l.rows * l.r_line);
  p.source.total = narrow(l.images * l.s_depths * l.s_rows * l.s_line);
  p.result.total = narrow(l.planes * l.rows * l.r_line);
  p.planes = narrow(l.planes);
  p.rows = narrow(l.rows);
  p.steps = narrow(l.steps);
  p.cut = cut;
  p.unit_h = narrow(l.unit_h);
  p.unit_w = narrow(l.unit_w);
  p.phase_h = narrow(l.phase_h);
  p.phase_w = narrow(l.phase_w);
  p.vector = narrow(l.vector);
  p.source.shift = shift(forward ? pool.x.data : pool.y.data);
  p.result.shift = shift(forward ? pool.y.data : pool.x.data);
  p.source.pitch = narrow(m.s_pitch);
  p.source.layer = narrow(m.s_layer);
  p.result.pitch = narrow(m.r_pitch);
  p.result.layer = narrow(m.r_layer);
  p.shared.sums_pitch = narrow(m.s_columns);
  p.shared.sums_rows = narrow(m.rows);
  p.shared.sums_at = narrow(m.sums_at);
  p.shared.results_at = narrow(m.results_at);
  p.shared.bytes = narrow(m.bytes);
  p.usual = static_cast<float>(l.d.kernel) * static_cast<float>(l.h.kernel);
  p.by.channels = FastDiv(l.inner);
  p.by.depths = FastDiv(l.planes / l.images);
  p.by.s_depths = FastDiv(l.s_depths);
  const int64_t row_tiles = ceil_div(l.steps, int64_t{cut.steps}),
                column_tiles = ceil_div(l.strips_of_line, int64_t{cut.strips});
  p.by.row_tiles = FastDiv(row_tiles);
  p.by.column_tiles = FastDiv(column_tiles);
  p.by.strips = FastDiv(cut.strips);
  p.by.bands = FastDiv(ceil_div(int64_t{cut.steps}, int64_t{cut.band}));
  p.by.s_columns = FastDiv(std::max(m.s_columns, int64_t{1}));
  // Lines that are not whole are runs, else those of a layer are one.
  const auto chunks = [&](int64_t rows, int64_t columns) {
    return FastDiv(ceil_div((p.whole ? rows : 1) * columns + l.vector - 1, l.vector));
  };
  p.source.runs = FastDiv(p.whole ? 1 : std::max(m.s_rows, int64_t{1}));
  p.result.runs = FastDiv(p.whole ? 1 : m.rows);
  p.source.chunks = chunks(m.s_rows, std::max(m.s_columns, int64_t{1}));
  p.result.chunks = chunks(m.rows, m.columns);
  p.blocks = static_cast<unsigned>(blocks_of(l, cut));
  return p;
}

}  // namespace retrograd::kernels::cuda
