// SPDX-License-Identifier: Apache-2.0
// Boxes, threads and shared memory of stem_gather.cu: of all cuts the one whose modelled time is the least.
// Everything follows from the problem and the shared memory of a block: how many threads share a sum decides
// its bits.
#include "kernels/cuda/stems/stem_plan.h"

#include <algorithm>

#include "kernels/cuda/counts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWarp = 32, kMostShares = 8, kMostChunk = 16, kMostRows = 64;

int floor_of(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

bool is_wide(const Conv& conv, bool aligned) {
  const auto multiple = [&](int axis, int64_t size) { return size == 1 || conv.y.strides[axis] % 4 == 0; };
  return aligned && conv.y.strides[4] == 1 && conv.axes[2].y % 4 == 0 && multiple(0, conv.batch) &&
         multiple(1, conv.groups * conv.y_channels) && multiple(2, conv.axes[0].y) &&
         multiple(3, conv.axes[1].y);
}

int lanes_for_row(int columns) {
  for (const int lanes : {32, 16})
    if (round_up(columns, lanes) * 7 <= columns * 8) return lanes;
  return 8;
}

void set_box(StemPlan& p, int rows, int quads, int positions) {
  p.rows = rows, p.quads = quads, p.positions = positions;
  p.thread_rows = positions / quads;
  p.row_tiles = ceil_of(p.h.count, p.thread_rows * rows);
  p.column_tiles = ceil_of(p.w.count, quads * kStemRun);
  p.box_rows = p.thread_rows * rows + p.h.most - 1;
  p.box_columns = quads * kStemRun + p.w.most - 1;
  // Whole vectors are read, up to three columns beyond the box; stem_column changes places within eight. An
  // odd number of vectors is a row.
  const int read = round_up(p.box_columns + 3, 4);
  p.pitch = (std::max(read, stem_column(read - 4) + 4) / 4 | 1) * 4;
  // Channels that lie side by side are copied side by side: neighbouring planes begin four banks apart.
  p.plane = p.box_rows * p.pitch;
  p.plane += (36 - p.plane % 32) % 32;
  p.lanes = lanes_for_row(p.box_columns);
  p.by_box_rows = FastDiv(p.box_rows);
  p.by_groups_of_four = FastDiv(ceil_of(p.box_columns, 4));
}

// As many channels as fit into so many bytes of shared memory, a multiple of the shares; false: not even one
// each, which is how many it then takes.
bool set_chunk(StemPlan& p, int y_channels, int shares, int most) {
  const int tables = round_up(p.entries * 8, 16), channel = p.plane + p.weight_channel;
  const int rounds = std::max(1, std::min({(most - tables) / 8 / (shares * channel), kMostChunk / shares,
                                           ceil_of(y_channels, shares)}));
  const int sums = (shares - 1) * p.positions * p.classes * p.rows * p.channels * kStemRun;
  p.shares = shares;
  p.chunk = rounds * shares;
  p.buffer = p.chunk * channel;
  p.shared = tables + std::max(2 * p.buffer, sums) * 4;
  return p.shared <= most;
}

// Calls function(rows, quads, positions, shares).
template <class Function>
void for_each_cut(const StemPlan& p, int y_channels, Function&& function) {
  // Few channels leave registers for more rows: each value of y then serves more products.
  const int most_rows = p.channels == 1 ? 4 : p.channels == 2 ? 2 : 1;
  for (int rows = 1; rows <= most_rows && (rows == 1 || rows <= p.h.count); rows *= 2)
    for (int quads = 1; quads <= kWarp && (quads == 1 || quads / 2 * kStemRun < p.w.count); quads *= 2)
      for (int positions = kWarp; positions * p.classes <= kStemThreads; positions *= 2) {
        const int height = positions / quads * rows;
        if (positions > kWarp && (height > kMostRows || height / 2 >= p.h.count)) break;
        for (int shares = 1; shares <= kMostShares && positions * p.classes * shares <= kStemThreads &&
                             (shares == 1 || 4 * shares <= y_channels);
             shares *= 2)
          function(rows, quads, positions, shares);
      }
}

// How long a plan takes, in clock cycles of a GPU with 132 multiprocessors that begin four warps'
// instructions and read 128 bytes of shared memory a cycle. A model that cuts are compared with, not
// measured.
constexpr int kProcessors = 132, kShared = 227 << 10, kRegisters = 1 << 16, kOfThread = 128;
constexpr double kEnough = 384;                              // threads that hide what instructions wait for
constexpr double kElement = 10, kVector = 20, kWeight = 14;  // instructions of a copy
constexpr double kWider = 1.6;                               // more of 16-bit elements, and they wait
constexpr double kRow = 8, kChannel = 30;                    // and around a row of taps and a y channel
constexpr double kCache = 40;                                // bytes from L2 a cycle, of a multiprocessor
constexpr double kStart = 2500, kStep = 150;  // cycles: of a block's first copies, of a barrier

// Threads that meet the same bank when eight read 16 bytes each: one after another along a row they do not,
// nor in rows that lie an odd number of vectors apart.
int conflicts(const StemPlan& p) {
  if (p.quads >= 8) return 1;
  if (p.quads == 1) return p.rows;
  return p.quads == 4 && p.rows == 1 ? 1 : 2;
}

// Cycles in which a warp of this class adds a y channel.
double warp_cycles(const StemPlan& p, int th, int tw) {
  double instructions = kChannel, reads = 0;
  const int rows = th + p.rows - 1;
  for (int first = 0; first < tw; first += 8) {
    const int taps = std::min(8, tw - first);
    const int of_y = ceil_of(kStemRun + taps - 1, 4) * rows,
              of_w = ceil_of(taps * p.channels, 4) * th * p.rows;
    instructions += taps * p.channels * p.rows * th * kStemRun + of_y + of_w + kRow * rows;
    reads += 4.0 * of_y * conflicts(p) + of_w;
  }
  return std::max(instructions / 4, reads);
}

double cycles_of(const StemPlan& p, const Conv& conv) {
  double products = 0;
  for (int bh = 0; bh < p.h.stride; ++bh)
    for (int bw = 0; bw < p.w.stride; ++bw)
      products += p.positions / 32.0 * warp_cycles(p, stem_taps(p.h, bh), stem_taps(p.w, bw));
  const auto size = static_cast<double>(size_of(conv.y.dtype));
  const double box = static_cast<double>(p.box_rows) * p.box_columns;
  const double copies =
      (p.wide ? box / 4 * kVector : box * kElement) * (size == 2 ? kWider : 1) + p.entries * kWeight;
  const Axis& d = conv.axes[0];
  const double depth_taps =
      std::max(1.0, static_cast<double>(d.kernel) / static_cast<double>(d.y == 1 ? d.x : d.stride));
  const double rounds = depth_taps * static_cast<double>(conv.y_channels);
  const double sums =
      static_cast<double>(p.shares - 1) * p.positions * p.classes * p.rows * p.channels * kStemRun / 16;
  // Sectors of 32 bytes from the cache; rows begin anywhere.
  const double sectors =
      p.last ? box * size / 32 : p.box_rows * (p.box_columns * size / 32 + (p.wide ? 0.5 : 1));
  const double block = rounds * std::max(products + copies / 128, sectors * 32 / kCache) + sums;

  const double each = static_cast<double>(p.blocks(conv)) / kProcessors;  // blocks of a multiprocessor
  const int resident =
      std::max(1, std::min((kShared + 1024) / (p.shared + 1024), kRegisters / kOfThread / p.threads()));
  const double at_once = std::min(static_cast<double>(resident), std::max(1.0, each));
  const double busy = std::min(1.0, at_once * p.threads() / kEnough);
  // The last blocks leave some multiprocessors idle.
  const double turns = each > 8 ? each : ceil_of(p.blocks(conv), kProcessors);
  const double waits = kStart + kStep * ceil_of(conv.y_channels, p.chunk) * depth_taps;
  return turns * (block / busy + waits / at_once);
}

}  // namespace

StemAxis stem_axis(const Axis& axis) {
  StemAxis a;
  a.x = static_cast<int>(axis.x), a.y = static_cast<int>(axis.y), a.kernel = static_cast<int>(axis.kernel);
  a.stride = axis.y == 1 ? 1 : static_cast<int>(axis.stride);  // between places that are not there
  a.pad = static_cast<int>(axis.pad);
  a.most = stem_taps(a, 0);
  int end = 0;
  for (int b = 0; b < a.stride; ++b) {
    const int back = stem_taps(a, b) - 1;
    const int first = -floor_of(b - a.pad, a.stride) - back,
              last = floor_of(a.x - 1 + a.pad - b, a.stride) - back;
    a.first = b == 0 ? first : std::min(a.first, first);
    end = b == 0 ? last + 1 : std::max(end, last + 1);
  }
  a.count = std::max(1, end - a.first);
  return a;
}

StemPlan stem_plan(const Conv& conv, bool aligned, int64_t shared_bytes) {
  StemPlan p{};
  p.h = stem_axis(conv.axes[1]), p.w = stem_axis(conv.axes[2]);
  p.wide = is_wide(conv, aligned);
  p.last = conv.y.strides[1] == 1 && conv.y.strides[4] != 1;
  if (p.wide) {  // boxes begin at multiples of four
    const int first = floor_of(p.w.first, 4) * 4;
    p.w.count += p.w.first - first, p.w.first = first;
  }
  const auto x_channels = static_cast<int>(conv.x_channels), y_channels = static_cast<int>(conv.y_channels);
  p.channels = x_channels <= 4 ? x_channels : x_channels <= 6 ? 3 : 4;
  p.c_blocks = ceil_of(x_channels, p.channels);
  p.classes = p.h.stride * p.w.stride;
  p.weight_row = round_up(p.w.most, 4) * p.channels;
  p.weight_class = p.h.most * p.weight_row;
  p.weight_channel = p.classes * p.weight_class;
  p.entries = p.h.kernel * p.w.kernel * p.channels;
  p.by_entries = FastDiv(p.entries);

  const auto most = static_cast<int>(std::min<int64_t>(shared_bytes, kStemShared));
  StemPlan best = p;
  for_each_cut(p, y_channels, [&](int rows, int quads, int positions, int shares) {
    set_box(p, rows, quads, positions);
    if (!set_chunk(p, y_channels, shares, most)) {
      if (!best.fits && (best.shared == 0 || p.shared < best.shared)) best.shared = p.shared;
      return;
    }
    p.cycles = cycles_of(p, conv);
    if (!best.fits || p.cycles < best.cycles) best = p, best.fits = true;
  });
  return best;
}

}  // namespace retrograd::kernels::cuda
