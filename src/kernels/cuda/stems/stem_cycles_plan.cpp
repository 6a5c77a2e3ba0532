// SPDX-License-Identifier: Apache-2.0
// How long stem_gather.cu takes, in clock cycles of a GPU with 132 multiprocessors that begin four warps'
// instructions and read 128 bytes of shared memory a cycle. A model that cuts are compared with, not
// measured.
#include <algorithm>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/stems/stem_plan.h"

namespace retrograd::kernels::cuda {
namespace {

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

}  // namespace

double stem_cycles(const StemPlan& p, const Conv& conv) {
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

}  // namespace retrograd::kernels::cuda
