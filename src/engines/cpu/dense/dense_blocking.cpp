// SPDX-License-Identifier: Apache-2.0
// The cuts of dense_blocking.h. The constants were chosen by measurement on a core with 32 KiB of L1 and 1
// MiB of L2.
#include "engines/cpu/dense/dense_blocking.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "kernels/cpu/dense/cell_tiles.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;
using problem::Window;

// Parts of L2: packed weights that the tiles of a box stream through L1, a strip, and sums; half the L2 would
// be enough for them together. A source that is read in place is not used so often that sums should be taken
// up once more for it.
int64_t panel_room(const DenseBlocking& cut) { return cut.room.l2 / 4; }
int64_t strip_room(const DenseBlocking& cut) { return cut.room.l2 / (cut.in_place ? 1 : 4); }
int64_t sum_room(const DenseBlocking& cut) { return cut.room.l2 / 2; }
// Of tasks with whole images: more are a tenth slower, for they are read for each strip.
int64_t whole_sum_room(const DenseBlocking& cut) { return cut.room.l2 / 4; }
constexpr int64_t kLineFloats = 16;
constexpr int64_t kPositionsOfGroups = 512;  // in a box that all groups share
constexpr int64_t kFewestPositions = 16;     // fewer are no tile
constexpr int64_t kWantedTasks = 16;         // enough for the threads to share evenly
constexpr double kColumnBoxes = 1.25;        // what boxes along H take longer
constexpr double kOneTask = 3;               // what a task alone takes longer than its part of many
constexpr int64_t kTaskProducts = 1 << 19;   // about 10 us: less is not worth handing out
constexpr int64_t kMostImagesInside = 16, kFewImagesInside = 8;
// Of a plane whose dead taps are left out at its borders rather than image by image: 7.8 ms for 8.7
// (rn50_3x3_14), whose source is then read in place.
constexpr int64_t kColumnsForImages = 14;
constexpr int64_t kFewProducts = 96;
constexpr int64_t kShortestRun = 4;  // rows of a tile that keep the multipliers busy
constexpr double kPaddingWorthSkipping = 0.05;
// Cycles of a row's products with a vector of weights.
constexpr double kProductCost = 0.6;
// Of tiles of one row or two, which wait for their own additions.
constexpr double kOneRow = 2.4, kTwoRows = 1.2;
// Cycles a float: copied to a strip, or read for the first time where it lies; of packed weights read again
// for another box, and of sums taken up again.
constexpr double kCopyCost = 0.6, kTurnCost = 1.2, kInPlaceCost = 0.3, kByPlaceCost = 0.4, kPanelCost = 0.12,
                 kSumCost = 0.2;
// A run of neighbours that is copied by itself; a float of a strip for all tasks that another core has
// loaded.
constexpr double kRunCost = 16, kSharedCost = 1;
// And of weights packed for all tasks, through memory, or for one task, which stays in L2.
constexpr double kPackCost = 4.5, kPackHereCost = 1.8;
constexpr double kMostSharedFloats = 1 << 22;  // of strips for all tasks

// The part of (output, tap) pairs that read inside the input.
double live_part(const ConvPass& p) {
  double part = 1;
  for (const Window& w : p.axes) {
    double live = 0;
    for (int64_t tap = 0; tap < w.kernel; ++tap) live += static_cast<double>(live_outputs(w, tap).size());
    part *= live / (static_cast<double>(w.kernel) * static_cast<double>(w.y));
  }
  return part;
}

// Where the live taps change along the axis.
std::vector<int64_t> cuts_of(const AxisPhase& axis) {
  std::vector<int64_t> cuts{0, axis.count};
  for (const PhaseTap& tap : axis.taps) {
    const int64_t begin = ceil_div(std::max<int64_t>(-tap.offset, 0), axis.source_step);
    const int64_t end = ceil_div(std::max<int64_t>(axis.source_size - tap.offset, 0), axis.source_step);
    cuts.push_back(std::clamp<int64_t>(begin, 0, axis.count));
    cuts.push_back(std::clamp<int64_t>(end, 0, axis.count));
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

// The part of an axis that has the same live taps, if it is long enough for tiles that go down a column.
double part_with_columns(const AxisPhase& axis) {
  const std::vector<int64_t> cuts = cuts_of(axis);
  int64_t longest = 0;
  for (size_t i = 1; i < cuts.size(); ++i) longest = std::max(longest, cuts[i] - cuts[i - 1]);
  return longest < kLongColumn ? 0 : static_cast<double>(longest) / static_cast<double>(axis.count);
}

double live_taps(const AxisPhase& axis, int64_t j) {
  const TapRange live = live_range(axis, j);
  return static_cast<double>(live.last - live.first);
}

double wait_of(int64_t rows) { return rows == 1 ? kOneRow : rows == 2 ? kTwoRows : 1; }

// Pairs of a place of the axis and a tap that meet in the source.
double live_pairs(const AxisPhase& axis, const std::vector<int64_t>& cuts) {
  double pairs = 0;
  for (size_t i = 1; i < cuts.size(); ++i)
    pairs += static_cast<double>(cuts[i] - cuts[i - 1]) * live_taps(axis, cuts[i - 1]);
  return pairs;
}

// How long it takes to run through the axis from cut to cut with the live taps only, and with all of them:
// tiles of one or two rows wait for their own additions, where they do not go down a column, and registers
// take as long for one row as for all that they hold.
struct RunCost {
  RunCost(const AxisPhase& axis, double columns, const std::vector<int64_t>& cuts, bool registers)
      : live(live_pairs(axis, cuts)) {
    constexpr double kColumn = 1.1;
    const auto cost = [&](int64_t run) {
      constexpr int64_t kRows = kernels::cpu::kRegisterRows;
      if (registers) return static_cast<double>(ceil_div(run, kRows) * kRows);
      const double each = run < kLongColumn ? columns * kColumn + (1 - columns) * wait_of(run) : 1;
      return static_cast<double>(run) * each;
    };
    for (size_t i = 1; i < cuts.size(); ++i)
      from_cut_to_cut += cost(cuts[i] - cuts[i - 1]) * live_taps(axis, cuts[i - 1]);
    whole = (registers ? cost(axis.count) : static_cast<double>(axis.count)) *
            static_cast<double>(std::max<size_t>(axis.taps.size(), 1));
  }
  bool cuts_pay() const { return from_cut_to_cut <= 1.01 * whole; }
  bool cuts_waste_nothing() const { return from_cut_to_cut <= 1.05 * live; }
  double live, from_cut_to_cut = 0, whole = 0;
};

// Whether the channels of a plain tensor may be read in turn where they are: not all in the same lines of L1,
// and not place by place from far away.
bool has_near_channels(const PassTensor& tensor) {
  constexpr int64_t kNearFloats = 1280, kUnluckyFloats = 256;
  return tensor.strides[1] > 0 && tensor.strides[1] % kUnluckyFloats != 0 &&
         (tensor.strides[4] == 1 || tensor.strides[1] <= kNearFloats);
}

bool is_read_in_place(const ConvPass& pass, const DenseBlocking& cut) {
  const PassTensor& source = source_of(pass);
  // Places a multiple of 1 KiB apart share four sets of L1, which the rows of a tile then fight for: 1.9
  // times slower than a copy (256 channels last, 14 x 14), 3 times where rows are images of 8 x 8 x 8.
  const int64_t apart = source.strides[cut.images_inside ? 0 : 4];
  const bool aliased = apart % 256 == 0 && apart != 0;
  return is_plain(source, pass.rounding) && cut.skips_dead_taps[2] && !aliased &&
         (source.strides[1] == 1 || (!cut.images_inside && has_near_channels(source)));
}

// Whether groups share lines of memory that are gone from the caches when a group has been through all of the
// result.
bool shares_lines(const ConvPass& pass, const DenseBlocking& cut, const Positions& total) {
  constexpr double kManyFloats = 1 << 21;
  return pass.groups > 1 && cut.channels < kLineFloats && cut.in_place && !cut.images_inside &&
         source_of(pass).strides[1] == 1 && pass.result().strides[1] == 1 &&
         static_cast<double>(count_of(total)) * static_cast<double>(cut.channels * pass.groups) *
                 static_cast<double>(cut.phases.size()) >
             kManyFloats;
}

void list_phases(const ConvPass& pass, DenseBlocking& cut) {
  const auto phases_of = [&](const Window& window) {
    return is_forward(pass) ? std::vector<AxisPhase>{forward_phase(window)} : grad_input_phases(window);
  };
  cut.w_phases = phases_of(pass.axes[2]).size();
  for (const AxisPhase& d : phases_of(pass.axes[0]))
    for (const AxisPhase& h : phases_of(pass.axes[1]))
      for (const AxisPhase& w : phases_of(pass.axes[2])) {
        DensePhase phase{.axes = {d, h, w}, .taps_before = cut.all_taps, .w_cuts = cuts_of(w)};
        phase.taps = static_cast<int64_t>(d.taps.size() * h.taps.size() * w.taps.size());
        phase.live_lines = live_pairs(d, cuts_of(d)) * live_pairs(h, cuts_of(h));
        cut.all_taps += phase.taps;
        cut.most_taps = std::max(cut.most_taps, phase.taps);
        cut.phases.push_back(std::move(phase));
      }
  const int64_t lanes = cut.vectors.covering_lanes(cut.channels, cut.narrowest);
  cut.panel_floats = ceil_div(lanes * source_channels(pass) * cut.all_taps, kLineFloats) * kLineFloats;
}

// The strip of a box: the union of what its phases read.
void measure_strip(DenseBlocking& cut) {
  for (size_t axis = 0; axis < 3; ++axis) {
    int64_t lowest = INT64_MAX, highest = INT64_MIN;
    for (const DensePhase& phase : cut.phases)
      if (phase.taps > 0) {
        lowest = std::min(lowest, phase.axes[axis].lowest_offset());
        highest = std::max(highest, phase.axes[axis].highest_offset());
      }
    if (lowest > highest) lowest = highest = 0;
    const AxisPhase& any = cut.phases.front().axes[axis];
    const auto reach = [&](int64_t places) {
      const int64_t all = (places - 1) * any.source_step + highest - lowest + 1;
      // Planes that are read whole are turned over as one.
      const bool most = cut.images_inside && lowest <= 0 && 4 * all >= 3 * any.source_size;
      if (most && places == cut.grid.total[axis + 1]) return any.source_size;
      return cut.skips_dead_taps[axis] ? std::min(all, any.source_size) : all;
    };
    cut.lowest[axis] = lowest;
    cut.extent[axis] = reach(cut.grid.box[axis + 1]);
    cut.strip[axis] = cut.shares_strips ? reach(cut.grid.total[axis + 1]) : cut.extent[axis];
  }
}

// Even pieces of at most `most`.
int64_t even_piece(int64_t total, int64_t most) { return ceil_div(total, ceil_div(total, most)); }

// Boxes of about `wanted` positions, with at most `images` at one place; long along H rather than W with
// `columns`.
void cut_grid(const Positions& total, int64_t wanted, int64_t images, bool columns, DenseBlocking& cut) {
  if (!cut.images_inside) {
    cut.grid = cut_into_boxes(columns ? Positions{total[0], total[1], total[3], total[2]} : total, wanted);
    for (Positions* sizes : {&cut.grid.total, &cut.grid.box, &cut.grid.boxes})
      if (columns) std::swap((*sizes)[2], (*sizes)[3]);
    return;
  }
  images = even_piece(total[0], images);
  cut.grid = cut_into_boxes({1, total[1], total[2], total[3]}, std::max<int64_t>(wanted / images, 1));
  cut.grid.total = total;
  cut.grid.box[0] = images;
  cut.grid.boxes[0] = ceil_div(total[0], images);
}

// Source channels that are multiplied before the sums are taken up again.
int64_t channels_at_once(const ConvPass& pass, const DenseBlocking& cut) {
  const int64_t strip = cut.grid.box[0] * cut.plane();
  const int64_t channels =
      std::min(panel_room(cut) / (std::max<int64_t>(cut.most_taps, 1) * cut.width), strip_room(cut) / strip);
  return even_piece(source_channels(pass), std::max<int64_t>(channels, 1));
}

// Of a strip of this extent. Whole rows are copied as one, parts of rows one by one.
double load_cost(const DenseBlocking& cut, const std::array<int64_t, 3>& extent) {
  if (cut.in_place) return kInPlaceCost;
  if (cut.by_place) return kByPlaceCost;
  const bool whole = extent[2] >= cut.phases.front().axes[2].source_size;
  const int64_t run = whole ? extent[1] * extent[2] : extent[2];
  return (cut.images_inside ? kTurnCost : kCopyCost) + kRunCost / static_cast<double>(run);
}

// Of strips that all tasks share.
double shared_floats(const ConvPass& pass, const DenseBlocking& cut) {
  return static_cast<double>(pass.groups * source_channels(pass) * pass.batch * cut.strip_plane());
}

// Places of a strip that are read: in place those between the taps of a stride are not.
int64_t read_places(const DenseBlocking& cut) {
  if (!cut.in_place) return cut.plane();
  int64_t places = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    size_t taps = 0;
    for (const DensePhase& phase : cut.phases) taps = std::max(taps, phase.axes[axis].taps.size());
    places *= std::min(cut.extent[axis], cut.grid.box[axis + 1] * static_cast<int64_t>(taps));
  }
  return places;
}

// Cycles spent on reading sources, on reading weights again and on taking up sums again.
double overhead(const ConvPass& pass, const DenseBlocking& cut) {
  const auto k = static_cast<double>(source_channels(pass)), groups = static_cast<double>(pass.groups);
  const double sources = groups * static_cast<double>(cut.grid.count() * cut.m_blocks) * k *
                         static_cast<double>(cut.grid.box[0] * read_places(cut));
  const double weights =
      groups * static_cast<double>(cut.grid.count()) * static_cast<double>(cut.panel_floats);
  const double results = groups * static_cast<double>(count_of(cut.grid.total)) *
                         static_cast<double>(cut.channels) * static_cast<double>(cut.phases.size());
  const int64_t blocks = ceil_div(source_channels(pass), channels_at_once(pass, cut));
  const double loads = cut.shares_strips
                           ? shared_floats(pass, cut) * load_cost(cut, cut.strip) + sources * kSharedCost
                           : sources * load_cost(cut, cut.extent);
  return loads + weights * kPanelCost + results * static_cast<double>(blocks - 1) * kSumCost;
}

// Cycles of the products, in boxes of this grid.
double product_cycles(const ConvPass& pass, const DenseBlocking& cut) {
  const auto& box = cut.grid.box;
  double rows = 0;
  for (const DensePhase& phase : cut.phases) {
    const AxisPhase& w = phase.axes[2];
    double line = static_cast<double>(w.count) * static_cast<double>(w.taps.size());
    if (!cut.crosses_cuts) line = 0;
    for (size_t i = 1; i < phase.w_cuts.size() && !cut.crosses_cuts; ++i) {
      const int64_t run = phase.w_cuts[i] - phase.w_cuts[i - 1], along = std::min(run, box[3]);
      const int64_t tile = cut.images_inside                       ? box[0]
                           : along < std::min(box[2], kLongColumn) ? box[2]
                                                                   : along;
      line += static_cast<double>(run) * live_taps(w, phase.w_cuts[i - 1]) * wait_of(tile);
    }
    rows += phase.live_lines * line;
  }
  const int64_t lanes = cut.vectors.covering_lanes(cut.channels, cut.narrowest);
  return kProductCost * rows * static_cast<double>(pass.batch * pass.groups * source_channels(pass)) *
         static_cast<double>(ceil_div(lanes, cut.vectors.floats));
}

// Cycles of all tasks, times how much longer than their even part the last thread takes: the mean of two
// threads and of any number. More than `wanted` tasks gain nothing.
double cycles(const ConvPass& pass, const DenseBlocking& cut, int64_t wanted, double overhead) {
  const int64_t tasks = std::min(cut.groups_inside ? cut.grid.count() : cut.tasks(pass.groups), wanted);
  const double of_two = static_cast<double>(2 * ceil_div(tasks, 2)),
               of_many = static_cast<double>(tasks) + kOneTask;
  return (product_cycles(pass, cut) + overhead) * (of_two + of_many) / 2 / static_cast<double>(tasks);
}

// Tasks that are worth handing out.
int64_t wanted_tasks(const ConvPass& pass, const Positions& total, const DenseBlocking& cut) {
  const double products =
      static_cast<double>(count_of(total)) * static_cast<double>(pass.groups * cut.panel_floats);
  return static_cast<int64_t>(std::clamp(products / kTaskProducts, 1.0, static_cast<double>(kWantedTasks)));
}

// Large boxes copy little more than they use, few boxes read weights seldom; but there should be tasks enough
// for the threads, and the sums of a task must stay in L2. Halves the boxes as long as it may pay.
void cut_tasks(const ConvPass& pass, const Positions& total, DenseBlocking& cut) {
  const auto phases = static_cast<int64_t>(cut.phases.size());
  const int64_t tiles = ceil_div(result_channels(pass), cut.width);
  const int64_t positions = count_of(total);
  const int64_t tasks = wanted_tasks(pass, total, cut);
  double best = -1;
  DenseBlocking tried = cut;
  const auto try_grid = [&](bool columns, bool last) {
    const int64_t room = sum_room(cut) / (count_of(tried.grid.box) * phases * cut.width);
    if (room == 0 && !last) return;
    const int64_t shares = std::min(tiles, ceil_div(tasks, tried.grid.count() * pass.groups));
    const int64_t m_tiles =
        even_piece(tiles, std::clamp<int64_t>(tiles / shares, 1, std::max<int64_t>(room, 1)));
    tried.m_block = m_tiles * cut.width;
    tried.m_blocks = ceil_div(tiles, m_tiles);
    for (const bool for_all : {false, true}) {
      tried.shares_strips = for_all;
      measure_strip(tried);
      if (for_all && (cut.in_place || shared_floats(pass, tried) > static_cast<double>(cut.room.l2)))
        continue;
      const double cost = cycles(pass, tried, tasks, overhead(pass, tried)) * (columns ? kColumnBoxes : 1);
      if (best >= 0 && cost >= best) continue;
      best = cost;
      cut = tried;
    }
  };
  const int64_t most = cut.groups_inside ? std::min(positions, kPositionsOfGroups) : positions;
  const auto try_grids = [&](int64_t images, bool columns) {
    for (int64_t wanted = most;; wanted = ceil_div(wanted, 2)) {
      cut_grid(total, wanted, images, columns, tried);
      try_grid(columns, wanted <= kFewestPositions);
      if (wanted <= kFewestPositions) break;
    }
  };
  try_grids(kMostImagesInside, false);
  if (cut.images_inside && total[0] > kFewImagesInside) try_grids(kFewImagesInside, false);
  if (!cut.images_inside && !cut.crosses_cuts && total[2] >= kLongColumn) try_grids(1, true);
}

// Where all places of some images fit into a task, with sums for one tile of result channels.
void cut_whole_images(const ConvPass& pass, const Positions& total, DenseBlocking& cut) {
  DenseBlocking tried = cut;
  const auto phases = static_cast<int64_t>(cut.phases.size());
  const int64_t tiles = ceil_div(result_channels(pass), cut.width);
  const int64_t places = count_of({1, total[1], total[2], total[3]});
  int64_t images = whole_sum_room(cut) / (places * phases * cut.width);
  if (cut.images_inside) images = std::min(images, kMostImagesInside);
  if (images == 0 || cut.most_taps == 1) return;  // one tap: packing is copying
  images = even_piece(total[0], std::min(images, total[0]));
  tried.grid = {total, {images, total[1], total[2], total[3]}, {ceil_div(total[0], images), 1, 1, 1}};
  tried.m_block = cut.width;
  tried.m_blocks = tiles;
  tried.whole_images = true;
  tried.shares_strips = !cut.in_place && tiles > 1;
  measure_strip(tried);
  const double once = shared_floats(pass, tried);
  if (once > kMostSharedFloats) return;
  const double weights = static_cast<double>(pass.groups * cut.panel_floats);
  const double whole = once * load_cost(cut, tried.strip) + once * static_cast<double>(tiles) * kPanelCost +
                       weights * static_cast<double>(tried.grid.count()) * kPackHereCost;
  const int64_t tasks = wanted_tasks(pass, total, cut);
  if (cycles(pass, tried, tasks, whole) < cycles(pass, cut, tasks, overhead(pass, cut) + weights * kPackCost))
    cut = tried;
}

// Blocks of channels that tile registers add over without a rest.
void fill_registers(int64_t channels, DenseBlocking& cut) {
  constexpr int64_t kCells = kernels::cpu::kRegisterCells;
  if (channels % kCells != 0) return;
  cut.channels_per_block =
      even_piece(channels / kCells, std::max<int64_t>(cut.channels_per_block / kCells, 1)) * kCells;
}

}  // namespace

int64_t DenseBlocking::width_at(int64_t m) const { return vectors.next_tile_width(channels - m, narrowest); }

// Offsets grow or fall with the taps, so both ends are found by halving: a forward problem may have as many
// positions in its padding as a kernel has taps.
TapRange live_range(const AxisPhase& axis, int64_t j) {
  const auto size = static_cast<int64_t>(axis.taps.size());
  const auto place = [&](const PhaseTap& tap) { return j * axis.source_step + tap.offset; };
  const auto inside = [&](const PhaseTap& tap) { return place(tap) >= 0 && place(tap) < axis.source_size; };
  if (size == 0 || (inside(axis.taps.front()) && inside(axis.taps.back()))) return {0, size};
  const bool falls = axis.taps.front().offset > axis.taps.back().offset;
  // How many taps come before the first that lies at `limit` or beyond it (falling: before it).
  const auto before = [&](int64_t limit) {
    int64_t low = 0, high = size;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const bool reached = (place(axis.taps[static_cast<size_t>(middle)]) >= limit) != falls;
      reached ? high = middle : low = middle + 1;
    }
    return low;
  };
  const TapRange range{before(falls ? axis.source_size : 0), before(falls ? 0 : axis.source_size)};
  return range.first < range.last ? range : TapRange{size, size};
}

ConvPass joined_rows(ConvPass pass) {
  const auto is_idle = [](const Window& w) {
    return w.kernel == 1 && w.stride == 1 && w.pad_lo == 0 && w.x == w.y;
  };
  Window& inner = pass.axes[2];
  for (size_t axis = 2; axis-- > 0;) {
    Window& outer = pass.axes[axis];
    const auto touches = [&](problem::PassTensor& t) {
      if (inner.y == 1 && outer.y > 1) t.strides[4] = t.strides[axis + 2];  // that of one place says nothing
      return outer.y == 1 || t.strides[axis + 2] == inner.y * t.strides[4];
    };
    if (!is_idle(inner) || !is_idle(outer) || !touches(pass.x) || !touches(pass.y)) break;
    inner.x = inner.y = inner.y * outer.y;
    outer.x = outer.y = 1;
  }
  return pass;
}

DenseBlocking plan_dense_gather(const ConvPass& pass, const VectorShape& vectors, const CacheRoom& room,
                                int64_t narrowest, bool registers) {
  DenseBlocking cut;
  cut.vectors = vectors;
  cut.narrowest = narrowest;
  cut.room = room;
  cut.channels = result_channels(pass);
  cut.width = std::max(vectors.fitting_tile_width(cut.channels), narrowest);
  list_phases(pass, cut);
  Positions total{pass.batch, 1, 1, 1};
  bool cuts_help = true, cuts_are_best = true, leaves = false;
  for (const DensePhase& phase : cut.phases) {
    for (size_t axis = 0; axis < 3; ++axis)
      total[axis + 1] = std::max(total[axis + 1], phase.axes[axis].count);
    const RunCost cost(phase.axes[2], part_with_columns(phase.axes[1]), phase.w_cuts, registers);
    cuts_help &= phase.w_cuts.size() == 2 || cost.cuts_pay();
    cuts_are_best &= cost.cuts_waste_nothing();
    leaves |= phase.taps > 0 && phase.axes[2].leaves_source();
  }
  const bool has_columns = cuts_help && (cuts_are_best || std::min(total[2], total[3]) >= kColumnsForImages);
  const bool pads_much = !registers && !has_columns && live_part(pass) < 1 - kPaddingWorthSkipping;
  cut.images_inside = pass.batch >= kShortestRun && (total[3] < kShortestRun || pads_much);
  cut.skips_dead_taps = {true, true, cut.images_inside || cuts_help || !leaves};
  cut.crosses_cuts = !cuts_help && !cut.images_inside;
  cut.in_place = is_read_in_place(pass, cut);
  // Cells of numbers that lie side by side, at any address, are cells once they are copied.
  const PassTensor& source = source_of(pass);
  const bool plain = is_plain(source, pass.rounding);
  cut.by_place = !cut.in_place && source.strides[1] == (plain ? 1 : 2) && (plain || narrowest > 0) &&
                 (registers || source_channels(pass) >= kLineFloats);
  cut.groups_inside = shares_lines(pass, cut, total);
  cut_tasks(pass, total, cut);
  cut_whole_images(pass, total, cut);
  cut.channels_per_block = channels_at_once(pass, cut);
  // Results of few products are written as fast as memory takes them, if all of a position follow each other.
  const bool few_products = !registers && cut.most_taps * source_channels(pass) <= kFewProducts;
  cut.m_together = few_products ? (kMostPanelsTogether - 1) * cut.width : cut.width;
  if (registers) fill_registers(source_channels(pass), cut);
  return cut;
}

}  // namespace retrograd::engines::cpu
