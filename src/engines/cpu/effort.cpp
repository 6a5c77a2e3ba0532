// SPDX-License-Identifier: Apache-2.0
// Short formulas, fitted to `retrograd sweep --every-implementation` by the efficiencies in tuning/cpu.txt.
#include "engines/cpu/effort.h"

#include <algorithm>
#include <cmath>

#include "engines/cpu/dense/cells.h"
#include "engines/cpu/dense/tile_grad_weight_cut.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;

// Taps of an axis that read inside x at some place of y, and pairs of a place and a tap that do.
struct Live {
  explicit Live(const problem::Window& axis) {
    constexpr int64_t kMostTaps = 4096;  // that are looked at
    taps = static_cast<double>(axis.kernel);
    pairs = taps * static_cast<double>(axis.y);
    if (axis.kernel > kMostTaps) return;
    taps = pairs = 0;
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      const int64_t places = live_outputs(axis, tap).size();
      taps += places > 0 ? 1 : 0;
      pairs += static_cast<double>(places);
    }
  }
  double taps, pairs;
};

double rounded_up(double value, double step) { return std::ceil(value / step) * step; }

// x or y of a convolution, a group of it.
struct Side {
  double channels = 1, places = 1, row = 1;  // places: of the batch; row: of W
  bool last = false, spread = false;         // channels lie side by side; neither they nor places
  bool picked = false;                       // places of a row that are read lie apart
  double rows() const { return places / row; }
  double elements() const { return channels * places; }
};

// A convolution in numbers that cannot overflow.
struct Shape {
  // `joins`: rows that follow each other are one, where the kernel has one tap.
  Shape(const problem::Pass& pass, const Machine& machine, bool joins = false)
      : own(effort_of(pass)), lanes(machine.cpu.vector_floats) {
    const auto& p = std::get<ConvPass>(pass);
    const bool grad_input = p.kind == ConvPassKind::kGradInput;
    converts = p.result().dtype != DType::kF32;
    pairs_of_bf16 = !unfit_for_bf16_pairs(p, machine);
    batch = static_cast<double>(std::max<int64_t>(p.batch, 1));
    groups = static_cast<double>(p.groups);
    x.channels = static_cast<double>(p.x_channels_per_group());
    y.channels = static_cast<double>(p.y_channels_per_group());
    x.last = p.x.strides[1] == 1 && p.x_channels > 1;
    y.last = p.y.strides[1] == 1 && p.y_channels > 1;
    x.spread = !x.last && p.x.strides[4] != 1;
    y.spread = !y.last && p.y.strides[4] != 1;
    x.picked = !grad_input && !x.last && p.axes[2].kernel == 1 && p.axes[2].stride > 1;
    x.places = y.places = pairs = batch;
    for (size_t i = 0; i < 3; ++i) {
      const problem::Window& axis = p.axes[i];
      const double kernel = static_cast<double>(axis.kernel);
      taps *= kernel;
      if (i < 2) tap_rows *= kernel;
      const double stride = static_cast<double>(std::min(axis.stride, std::max<int64_t>(axis.x, 1)));
      if (grad_input) phases *= stride;
      x.row = static_cast<double>(std::max<int64_t>(axis.x, 1));
      y.row = static_cast<double>(std::max<int64_t>(axis.y, 1));
      x.places *= grad_input ? x.row : std::min(x.row, std::max(y.row * kernel, 1.0));
      y.places *= y.row;
      const Live live(axis);
      pairs *= live.pairs;
      live_taps *= live.taps;
      joins &= axis.kernel == 1 && axis.stride == 1;
      if (i == 1) height = std::ceil(grad_input ? x.row / stride : y.row);
      if (i == 2) row_phases = grad_input ? stride : 1;
    }
    if (joins) {
      x.row = x.places / batch;
      y.row = y.places / batch;
      height = 1;
    }
    if (p.kind == ConvPassKind::kForward) own.bytes -= unread_bytes(p);
    result = grad_input ? x : y;
    source = grad_input ? y : x;
    // Of one phase of the stride.
    phase_row = std::ceil(result.row / row_phases);
    phase_places = result.places / phases;
  }
  // Lanes of the tiles that cover so many channels: two vectors, or one and a half.
  double covered(double channels) const {
    const double full = 2 * lanes, whole = std::floor(channels / full) * full, rest = channels - whole;
    if (rest == 0) return whole;
    return whole + (rest <= lanes ? lanes : rest <= 1.5 * lanes ? 1.5 * lanes : full);
  }
  double tiles(double channels) const { return std::ceil(channels / (2 * lanes)); }
  // Operations of `each` products for every live pair, in all groups.
  double operations(double each) const { return 2 * pairs * groups * each; }
  // Calls that load a side: its elements, and places or rows of channels that are converted.
  double loads(const Side& side) const {
    const double each =
        side.last ? 0.15 * side.places : (side.picked ? 2 : 0.25) * side.rows() * side.channels;
    return converts ? side.elements() / 50 + each : side.elements() / 100 + each / 6;
  }
  // The same where rows are copied channel by channel.
  double row_copies(const Side& side) const {
    const double a_call = side.spread ? 8 : side.last ? 25 : 50;  // elements
    const double calls = side.elements() / a_call + 0.4 * side.rows() * side.channels;
    return converts ? calls : calls / 2;
  }
  // Those that store one: rows of 16 bits are stored channel by channel.
  double stores(const Side& side) const {
    if (side.last) return 0.4 * side.places * tiles(side.channels);
    return side.elements() / 40 + side.rows() * (converts ? side.channels : 2 * tiles(side.channels));
  }
  Effort with(double operations, double calls) const {
    return {.operations = operations, .bytes = own.bytes, .launches = 1, .calls = calls};
  }

  // Of x, between the windows of a stride. Along W lines of memory have places of several windows, unless
  // channels lie side by side.
  double unread_bytes(const ConvPass& p) const {
    double all = batch * groups * x.channels * static_cast<double>(size_of(p.x.dtype)), read = all;
    for (size_t i = 0; i < 3; ++i) {
      const problem::Window& axis = p.axes[i];
      const auto places = static_cast<double>(axis.x);
      all *= places;
      read *= i == 2 && !x.last
                  ? places
                  : std::min(places, static_cast<double>(axis.y) * static_cast<double>(axis.kernel));
    }
    return all - read;
  }

  Effort own;  // of the pass itself
  double lanes;
  double batch, groups;
  Side x, y, result, source;
  double pairs = 1;                            // of a place of y and a tap that reads inside x
  double phases = 1, row_phases = 1;           // of the strides of grad_input, and of those of W
  double phase_places, phase_row, height = 1;  // of one phase
  double taps = 1, tap_rows = 1, live_taps = 1;
  bool converts = false;       // the result's elements are no FP32
  bool pairs_of_bf16 = false;  // vectors multiply the operands two at a time
};

// `tile`: calls that a tile of positions and channels takes; `row`: those of a row of packed weights, whose
// elements take one for `elements`.
double dense_gather_calls(const Shape& s, double tile, double row, double elements) {
  const double tiles = s.tiles(s.result.channels);
  const double packing =
      s.taps * s.x.channels * s.y.channels / elements +
      // A phase of the stride packs its own taps: of the lines of memory that it reads it needs a part.
      s.taps * s.source.channels * tiles * (row + (s.phases > 1 ? 0.1 * std::min(s.phases, 16.0) : 0));
  const double weaving = s.phases > 1 ? (28 * s.phases + 3.4 * s.result.rows() * s.row_phases) * tiles : 0;
  // Tiles of positions along W, or of images where rows are short.
  const bool images = s.phase_row < 4 && s.batch >= 4;
  const double runs = images ? s.result.places / std::min(s.batch, 12.0)
                             : s.result.rows() * s.row_phases * std::ceil(s.phase_row / 12);
  return s.groups * (80 + s.stores(s.result) + s.loads(s.source) + packing + weaving + tile * runs * tiles);
}

// Places of a row as lanes: those of a whole plane with the gaps of the halo between its rows, unless the
// gaps are large, then row by row. The places that are computed, and the rows that they are computed in.
struct LongRows {
  LongRows(const Shape& s, const problem::Window& last) {
    const double halo = static_cast<double>(last.kernel - 1) * static_cast<double>(last.dilation) /
                        static_cast<double>(last.stride);
    const double pitch = s.phase_row + halo;
    const bool whole = 2 * pitch <= 3 * s.phase_row;
    rows = s.phase_places / s.phase_row / (whole ? s.height : 1);
    places = rows * rounded_up(whole ? s.height * pitch : s.phase_row, s.lanes);
  }
  double places, rows;
};

}  // namespace

Effort dense_gather_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine, true);
  return s.with(s.operations(s.source.channels * s.covered(s.result.channels)),
                dense_gather_calls(s, 0.3 + 0.12 * s.pairs / s.result.places, 0.06, s.converts ? 25 : 50));
}
Effort amx_gather_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine, true);
  const auto& p = std::get<ConvPass>(pass);
  // Of an odd number of source channels that lie side by side, pairs are made for each result channel.
  const int64_t channels = p.x_channels_per_group();
  const bool far =
      p.kind == ConvPassKind::kForward && channels > 1 && channels % 2 != 0 && p.w.strides[1] == 1;
  return s.with(s.operations(rounded_up(s.source.channels, 16) * rounded_up(s.result.channels, 16) *
                             rounded_up(s.phase_row, 8) / s.phase_row),
                dense_gather_calls(s, 6, 0.4, far ? 4 : 80));
}
Effort pointwise_gather_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine, true);
  const double result = s.result.channels, source = s.source.channels;
  // Rows with zeros between the places of a stride.
  const double zeros = s.phases > 1 ? s.result.rows() * result * (s.converts ? 1.7 : 0.2) : 0;
  return s.with(s.operations(rounded_up(result, 2) * source),
                s.groups * (4 + s.source.elements() / (s.converts ? 40 : 60) + s.result.elements() / 60 +
                            0.35 * std::ceil(result / 6) * s.pairs / s.lanes + result * source / 20 + zeros));
}
Effort few_channels_gather_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  const LongRows r(s, std::get<ConvPass>(pass).axes[2]);
  const double result = s.result.channels, elements = s.result.elements();
  // Groups whose channels lie side by side write a part of a line at a place, each phase again: the more the
  // further places are apart.
  const double apart = std::min(s.groups * result / 128, 1.0);
  const double stores = s.result.last ? elements * (s.phases > 1 ? 2 / result : 0.15) / result * apart
                                      : elements / (s.result.spread ? 8 : 100) +
                                            s.result.rows() * result * (s.converts ? 1 : 0.3);
  const double weaving =
      s.phases > 1 ? elements / 100 + s.result.rows() * result * std::min(s.row_phases, 16.0) : 0;
  // Pairs that lie side by side are copied without a conversion.
  const double copies = s.row_copies(s.source) * (s.pairs_of_bf16 && s.source.last ? 0.3 : 1);
  const double source = s.pairs_of_bf16 ? std::ceil(s.source.channels / 2) : s.source.channels;
  return s.with(2 * s.groups * r.places * s.taps * source * (result + 0.8 * std::ceil(result / 6)),
                s.groups * (8 * s.batch + 2 * r.rows * std::ceil(result * s.phases / 12) + copies + stores +
                            weaving + 0.3 * s.taps * s.x.channels * s.y.channels));
}

Effort dense_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine, true);
  const auto [smaller, larger] = std::minmax(s.x.channels, s.y.channels);
  const double tap = 0.07 * s.y.rows() + 3.7 * std::ceil(smaller / 8);  // a tile of lanes
  return s.with(s.operations(s.covered(larger) * smaller),
                s.groups * (22 + (s.converts ? 4.5 : 2) * s.batch + s.loads(s.x) + s.loads(s.y) +
                            s.taps * smaller * larger / (s.converts ? 40 : 60) +
                            s.tiles(larger) * (0.07 * s.pairs + s.taps * tap)));
}
Effort amx_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine, true);
  // An image without a partner takes as long as two.
  return s.with(s.operations(rounded_up(s.x.channels, 16) * rounded_up(s.y.channels, 16) *
                             rounded_up(s.y.row, 8) / s.y.row * rounded_up(s.batch, 2) / s.batch),
                s.groups * (s.loads(s.x) + s.loads(s.y) + s.taps * s.x.channels * s.y.channels / 20));
}
Effort amx_places_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  const TileGradWeightCut cut(std::get<ConvPass>(pass));
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const double boxes = number(cut.grid.count()), numbers = boxes * number(cut.numbers);
  const double x_copies = number(cut.phases * cut.lane_blocks), y_copies = number(cut.row_blocks);
  const double x = s.x.channels, lanes = rounded_up(s.y.channels, 16);
  // Numbers are copied row by row, those of a channel at a time unless channels lie side by side.
  const double rows = numbers / number(TileSpace(cut.axes, cut.grid.box).step[2]);
  const double copied = numbers * (x * x_copies + lanes * y_copies) / 70 +
                        rows * (x_copies * (s.x.last ? std::ceil(x / 32) : x) +
                                y_copies * (s.y.last ? std::ceil(lanes / 32) : s.y.channels));
  const double multiplied = numbers * s.live_taps / number(cut.folded_taps) *
                            rounded_up(number(cut.rows()), 16) * number(cut.row_blocks) * lanes;
  return s.with(2 * s.groups * multiplied, s.groups * (20 + copied + x * s.y.channels * s.taps / 20));
}
Effort stem_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  const double rows = s.x.channels * s.taps, tiles = s.tiles(s.y.channels);
  return s.with(
      2 * s.groups * s.y.places * rounded_up(rows, 6) * s.covered(s.y.channels),
      s.groups * (40 + s.x.elements() / 12 + 2 * s.row_copies(s.y) + (s.y.last ? 0.3 * s.y.places : 0) +
                  rows * s.y.channels / 8 + std::ceil(rows / 6) * tiles * (3.7 + 0.8 * s.y.rows())));
}
Effort few_channels_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  const problem::Window& last = std::get<ConvPass>(pass).axes[2];
  const LongRows r(s, last);
  const double weights = s.taps * s.x.channels * s.y.channels;
  // Rows that are converted and parted by residues go through memory once more.
  const double copies = s.row_copies(s.x) * (s.converts && last.stride > 1 ? 3 : 1) + s.row_copies(s.y);
  return s.with(2 * s.groups * weights * r.places * (s.pairs_of_bf16 ? 0.7 : 1),
                s.groups * (10 + 4 * s.batch + 1.5 * copies + 0.8 * weights +
                            0.4 * r.rows * s.x.channels * std::ceil(s.y.channels / 8) * s.tap_rows));
}

Effort depthwise_planes_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  const double channels = s.groups * std::max(s.x.channels, s.y.channels);
  const bool grad_weight = std::get<ConvPass>(pass).kind == ConvPassKind::kGradWeight;
  const double blocks =
      grad_weight ? s.batch * std::ceil(channels / s.lanes) : std::ceil(s.batch * channels / s.lanes);
  // Pixels whose channels lie side by side: many in one call where those are fewer than lanes.
  const double pixel = channels < s.lanes ? 0.15 : 0.5 * std::ceil(channels / s.lanes);
  const auto turned = [&](const Side& side) {
    return side.places * (s.groups * side.channels / 40 + (side.last ? pixel : 0));
  };
  return s.with(2 * blocks * s.lanes * s.pairs / s.batch,
                blocks * (20 + 0.25 * s.tap_rows * s.result.rows() / s.batch) + turned(s.x) + turned(s.y) +
                    channels * (1 + s.taps / (grad_weight ? 10 : 40)));
}
Effort depthwise_rows_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  // Taps on padding are multiplied, too.
  return s.with(2 * s.groups * s.taps * s.y.places * rounded_up(s.phase_row, s.lanes) / s.phase_row,
                s.groups * (2.6 * s.batch + s.x.places / 50));
}
Effort depthwise_channels_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  const double vectors = std::ceil(s.groups / s.lanes);
  return s.with(s.operations(vectors * s.lanes / s.groups),
                vectors * (10 + s.batch + s.result.rows() * (0.5 + 0.25 * s.tap_rows)) +
                    s.groups * (s.x.places + s.y.places) / 80);
}

}  // namespace retrograd::engines::cpu
