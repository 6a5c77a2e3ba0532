// SPDX-License-Identifier: Apache-2.0
// Sizes of boxes: rows as long as fit, then as many rows, depths and planes as leave several blocks to a
// multiprocessor. Boxes of grad_weight, which a block takes one after the other, are as large as fit.
#include "kernels/cuda/depthwise_windows/staged_plan.h"

#include <algorithm>
#include <numeric>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/depthwise_windows/staged_item.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kRoom = 40 << 10;        // bytes of a block, which leave room for five
constexpr int64_t kWeightRoom = 36 << 10;  // of a box of grad_weight: two boxes a block, three blocks
constexpr int64_t kMostRoom = 200 << 10;   // where a few rows need more
constexpr int64_t kWholePlane = 24 << 10;  // dilated planes that are staged as a whole
constexpr int64_t kNarrowest = 64;         // columns, where rows are cut
constexpr int64_t kEnoughBlocks = 528;
constexpr int64_t kEnoughItems = 2 * kStagedThreads;
constexpr int64_t kVectorBytes = 16;
constexpr int64_t kLanes = 32;
constexpr int64_t kWeightBlocks = 792;  // of grad_weight
constexpr int64_t kMostTerms = 2048;    // of a thread's sum
constexpr int64_t kFewTerms = 32;       // for which it adds up a tile's sums
constexpr int64_t kTilesABlock = 8;

struct Box {
  int64_t planes, depths, rows, columns;
};

// As many as `most` allows, in pieces of one length.
int64_t even(int64_t total, int64_t most) { return ceil_div(total, ceil_div(total, most)); }

class Cutter {
 public:
  Cutter(Staged& p, int64_t element, int64_t room = kRoom)
      : p_(p), element_(element), wide_(kVectorBytes / element), room_(room) {}

  int64_t rows_of(const Box& box) const {
    return p_.split ? box.rows + p_.h.kernel - 1 : extent(p_.h, box.rows);
  }
  int64_t depths_of(const Box& box) const { return std::min<int64_t>(extent(p_.d, box.depths), p_.d.source); }
  int64_t room_of(const Box& box) const {
    const int64_t columns = std::min<int64_t>(extent(p_.w, box.columns), p_.w.source);
    return ceil_div(columns + wide_ - 1, wide_) * wide_;
  }
  int64_t bytes_of(const Box& box) const {
    const int64_t weights =
        ceil_div(box.planes * p_.sources * p_.taps * p_.results_at_once, 4) * kVectorBytes;
    return weights + box.planes * p_.sources * depths_of(box) * rows_of(box) * room_of(box) * element_;
  }
  int64_t items_of(const Box& box) const {
    const int64_t tiles = ceil_div(ceil_div(box.rows, p_.spacing), p_.slide);
    return box.planes * box.depths * p_.spacing * tiles * box.columns;
  }
  int64_t blocks_of(const Box& box) const {
    return ceil_div(p_.all_planes, box.planes) * ceil_div(p_.d.results, box.depths) * p_.classes *
           ceil_div(class_rows(), box.rows) * ceil_div(p_.w.results, box.columns);
  }
  int64_t class_rows() const { return ceil_div(p_.h.results, p_.classes); }

  // Boxes larger than need be, as long as `blocks` are left.
  Box cut(int64_t blocks, int64_t items) const {
    const int64_t unit = int64_t{p_.slide} * p_.spacing, all_rows = class_rows();
    Box box{1, 1, std::min(unit, all_rows), p_.w.results};
    for (int64_t tiles = 2; bytes_of(box) > room_ && box.columns > kNarrowest; ++tiles)
      box.columns = ceil_div(p_.w.results, tiles);
    for (Box more = box; more.rows < all_rows; box = more) {
      more.rows = std::min(more.rows + unit, all_rows);
      if (bytes_of(more) > room_ || blocks_of(more) < blocks) break;
    }
    // Tiles of about one height, of whole units.
    if (box.rows < all_rows) box.rows = ceil_div(even(all_rows, box.rows), unit) * unit;
    if (box.rows < all_rows) return box;
    const auto grow = [&](int64_t Box::*size, int64_t all) {
      for (Box more = box; more.*size < all && items_of(box) < items; box = more) {
        more.*size = std::min(2 * more.*size, all);
        if (bytes_of(more) > room_ || blocks_of(more) < blocks) break;
      }
    };
    grow(&Box::depths, p_.d.results);
    if (box.depths == p_.d.results && box.columns == p_.w.results) grow(&Box::planes, p_.all_planes);
    return box;
  }

 private:
  Staged& p_;
  int64_t element_, wide_, room_;
};

// Four or eight of a thread's results.
int slide_of(const DepthwiseAxis& a, int64_t spacing) {
  const auto padded = [&](int64_t slide) { return ceil_div(ceil_div(a.results, spacing), slide) * slide; };
  return 5 * padded(8) <= 6 * padded(4) ? 8 : 4;
}

// Whether blocks take classes of rows.
void set_classes(Staged& p, int64_t element) {
  p.split = false, p.classes = 1, p.row_step = 1;
  if (p.h.matched || !shares(p.h) || p.h.dilation == 1) return;
  if (Cutter(p, element).bytes_of({1, 1, p.h.results, p.w.results}) <= kWholePlane) return;
  p.split = true;
  p.classes = p.spacing;
  p.row_step = p.h.dilation;
  p.spacing = p.spread = p.tap_rows = 1;
}

// How a thread's results lie.
void set_rows(Staged& p, int64_t element) {
  const int64_t spacing = spacing_of(p.h);
  p.chunk = shares(p.h) ? kStagedChunk : 1;
  p.slide = p.results_at_once == 1 ? slide_of(p.h, spacing) : 4;
  p.spacing = static_cast<int>(spacing);
  p.spread = shares(p.h) ? p.h.step : p.h.stride;
  p.tap_rows = p.h.step;
  set_classes(p, element);
}

void set_box(Staged& p, const Cutter& cutter, const Box& box, int64_t element) {
  p.planes = static_cast<int>(box.planes), p.depths = static_cast<int>(box.depths);
  p.rows = static_cast<int>(box.rows), p.columns = static_cast<int>(box.columns);
  p.source_depths = static_cast<int>(cutter.depths_of(box));
  p.source_rows = static_cast<int>(cutter.rows_of(box));
  p.row_room = static_cast<int>(cutter.room_of(box));
  p.slots = p.spacing * ceil_of(ceil_div(box.rows, p.spacing), p.slide);
  p.items = static_cast<uint32_t>(cutter.items_of(box));
  p.by.columns = FastDiv(p.columns);
  p.by.slots = FastDiv(p.slots);
  p.by.spacing = FastDiv(p.spacing);
  p.by.depths = FastDiv(p.depths);
  p.by.vectors = FastDiv(p.row_room * element / kVectorBytes);
  p.by.source_rows = FastDiv(p.source_rows);
  p.by.source_depths = FastDiv(p.source_depths);
  p.by.column_tiles = FastDiv(ceil_div(p.w.results, p.columns));
  p.by.classes = FastDiv(p.classes);
  p.by.row_tiles = FastDiv(ceil_div(cutter.class_rows(), p.rows));
  p.by.depth_tiles = FastDiv(ceil_div(p.d.results, p.depths));
}

// Instructions of an item of grad_weight for all tiles of taps: around it, of y, of each row, and of each
// column.
double instructions_of(const StagedWeights& w) {
  constexpr double kItem = 70, kOfY = 3, kRow = 4;
  const Staged& p = w.staged;
  double sum = 0;
  for (int tile = 0; tile < w.tiles; ++tile) {
    const TapBox taps = tap_box(w, tile);
    if (taps.rows <= 0) continue;
    const double rows = p.slide + taps.rows - 1;
    sum += kItem + kOfY * p.slide + kRow * rows +
           taps.columns * (2 * rows + static_cast<double>(p.slide) * taps.rows + 4);
  }
  return sum;
}

// Instructions of an item: around it, of each chunk of taps and of each column of it, of its results.
double instructions_of(const Staged& p) {
  constexpr double kItem = 90, kChunk = 20, kRow = 4, kResult = 6;
  const double taps_h = most_taps(p.h), chunks = ceil_of(most_taps(p.h), p.chunk);
  const double others = static_cast<double>(p.sources) * most_taps(p.d);
  const double rows = chunks * (p.slide - 1) + taps_h;
  const double of_column =
      2 * rows + taps_h * p.results_at_once + taps_h * p.slide * p.results_at_once + 4 * chunks;
  return kItem + others * (chunks * kChunk + rows * kRow + most_taps(p.w) * of_column) +
         kResult * p.slide * p.results_at_once;
}

}  // namespace

StagedPlan staged_plan(const Conv& conv, bool forward) {
  StagedPlan plan{};
  Staged& p = plan.staged;
  p.d = window_axis(conv.axes[0], forward, 0, 0);
  p.h = window_axis(conv.axes[1], forward, 0, 0);
  p.w = window_axis(conv.axes[2], forward, 0, 0);
  const int64_t element = static_cast<int64_t>(size_of(conv.x.dtype));
  p.sources = static_cast<int>(forward ? conv.x_channels : conv.y_channels);
  p.results = static_cast<int>(forward ? conv.y_channels : conv.x_channels);
  p.results_at_once = p.results <= 2 ? p.results : 4;
  p.groups = static_cast<int>(conv.groups);
  p.taps = p.d.kernel * p.h.kernel * p.w.kernel;
  p.all_planes = static_cast<int>(conv.batch * conv.groups);
  p.plane_step = 1;
  p.total = static_cast<uint32_t>(int64_t{p.all_planes} * p.sources * p.d.source * p.h.source * p.w.source);
  set_rows(p, element);
  const Cutter cutter(p, element);
  const Box box = cutter.cut(kEnoughBlocks, kEnoughItems);
  set_box(p, cutter, box, element);
  plan.shared = cutter.bytes_of(box);
  plan.fits = plan.shared <= kMostRoom;
  plan.blocks = cutter.blocks_of(box);
  p.by.groups = FastDiv(p.groups);
  p.by.taps = FastDiv(p.taps);
  p.by.sources = FastDiv(p.sources);
  p.kernels = depthwise_kernels(conv, forward);
  plan.instructions = static_cast<double>(plan.blocks) * p.items * instructions_of(p);
  return plan;
}

StagedWeightPlan staged_weight_plan(const Conv& conv) {
  StagedWeightPlan plan{};
  StagedWeights& w = plan.work;
  Staged& p = w.staged;
  p.d = window_axis(conv.axes[0], true, 0, 0);
  p.h = window_axis(conv.axes[1], true, 0, 0);
  p.w = window_axis(conv.axes[2], true, 0, 0);
  const auto element = static_cast<int64_t>(size_of(conv.x.dtype));
  w.x_channels = static_cast<int>(conv.groups * conv.x_channels);
  w.y_channels = static_cast<int>(conv.groups * conv.y_channels);
  w.by_x = FastDiv(conv.y_channels);  // pairs lie as weights do, and one side has one channel a group
  w.by_y = FastDiv(conv.x_channels);
  p.sources = 1, p.results = 1, p.results_at_once = 0;
  p.taps = p.d.kernel * p.h.kernel * p.w.kernel;
  p.all_planes = static_cast<int>(conv.batch);
  p.plane_step = w.x_channels;
  p.total = static_cast<uint32_t>(conv.batch * w.x_channels * p.d.source * p.h.source * p.w.source);
  const int common = std::gcd(p.h.stride, p.h.dilation);
  w.rows_apart = p.h.stride / common;
  p.spacing = std::min(p.h.dilation / common, p.h.results);
  p.slide = slide_of(p.h, p.spacing);
  p.spread = p.h.stride * (p.h.dilation / common);
  p.tap_rows = p.h.dilation;
  set_classes(p, element);

  const int64_t classes = std::min(w.rows_apart, p.h.kernel), rows = ceil_div(p.h.kernel, w.rows_apart);
  const int64_t row_chunks = ceil_div(rows, kTapRows), column_chunks = ceil_div(p.w.kernel, kTapColumns);
  w.chunk_rows = ceil_of(rows, row_chunks);
  w.chunk_columns = ceil_of(p.w.kernel, column_chunks);
  w.by_column_chunks = FastDiv(column_chunks);
  w.by_row_chunks = FastDiv(row_chunks);
  w.by_row_classes = FastDiv(classes);
  const int64_t tiles = p.d.kernel * classes * row_chunks * column_chunks;
  const int64_t groups = ceil_div(tiles, kTilesABlock);
  w.tiles = static_cast<int>(tiles);
  w.tiles_a_block = ceil_of(tiles, groups);
  w.warps_a_tile = kWeightWarps / w.tiles_a_block;
  w.by_tile_groups = FastDiv(groups);
  w.by_warps = FastDiv(w.warps_a_tile);
  plan.threads = kLanes * w.tiles_a_block * w.warps_a_tile;

  const Cutter cutter(p, element, kWeightRoom);
  const Box box = cutter.cut(1, 4 * kLanes * w.warps_a_tile);
  set_box(p, cutter, box, element);
  const int64_t sums = int64_t{kWeightWarps} * kTapRows * kTapColumns * static_cast<int64_t>(sizeof(float));
  const int64_t bytes = cutter.bytes_of(box);
  w.box_elements = static_cast<uint32_t>(bytes / element);
  plan.shared = std::max(2 * bytes, sums);
  plan.fits = plan.shared <= kMostRoom;
  const int64_t pairs = conv.groups * conv.x_channels * conv.y_channels, boxes = cutter.blocks_of(box);
  const int64_t terms = ceil_div(p.items, kLanes * w.warps_a_tile) * p.slide;  // of a thread, a box
  const int64_t wanted =
      std::min(ceil_div(kWeightBlocks, pairs * groups), ceil_div(boxes * terms, kFewTerms));
  const int64_t of_part =
      ceil_div(boxes, std::clamp<int64_t>(std::max(wanted, ceil_div(boxes * terms, kMostTerms)), 1, boxes));
  w.boxes = static_cast<uint32_t>(boxes), w.boxes_a_part = static_cast<uint32_t>(of_part);
  w.by_pairs = FastDiv(pairs);
  w.weights = pairs * p.taps;
  plan.parts = ceil_div(boxes, of_part);
  plan.blocks = plan.parts * pairs * groups;
  plan.instructions = static_cast<double>(pairs * boxes) * p.items * instructions_of(w);
  return plan;
}

}  // namespace retrograd::kernels::cuda
