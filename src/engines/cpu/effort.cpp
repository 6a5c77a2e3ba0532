// SPDX-License-Identifier: Apache-2.0
// Short formulas, fitted to `retrograd sweep --every-implementation` by the efficiencies in tuning/cpu.txt.
#include "engines/cpu/effort.h"

#include <algorithm>
#include <cmath>

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;

double rounded_up(double value, double step) { return std::ceil(value / step) * step; }

// A convolution in numbers that cannot overflow.
struct Shape {
  Shape(const problem::Pass& pass, const Machine& machine)
      : own(effort_of(pass)), lanes(machine.cpu.vector_floats) {
    const auto& p = std::get<ConvPass>(pass);
    const bool grad_input = p.kind == ConvPassKind::kGradInput;
    sixteen_bits = p.result().dtype == DType::kF32 ? 0 : 1;
    batch = static_cast<double>(p.batch);
    groups = static_cast<double>(p.groups);
    x = static_cast<double>(p.x_channels_per_group());
    y = static_cast<double>(p.y_channels_per_group());
    result = grad_input ? x : y;
    source = grad_input ? y : x;
    positions = batch;
    for (size_t i = 0; i < 3; ++i) {
      const problem::Window& axis = p.axes[i];
      const double kernel = static_cast<double>(axis.kernel);
      taps *= kernel;
      if (i < 2) tap_rows *= kernel;
      if (grad_input) phases *= static_cast<double>(axis.stride);
      positions *= static_cast<double>(grad_input ? axis.x : axis.y);
    }
    const problem::Window& last = p.axes[2];
    row = static_cast<double>(std::max<int64_t>(grad_input ? last.x : last.y, 1));
    // Of one phase of the stride.
    phase_row = grad_input ? std::ceil(row / static_cast<double>(std::max<int64_t>(last.stride, 1))) : row;
    rows = positions / row;
    products = own.operations / std::max(x * y, 1.0);
  }
  // Lanes of the tiles that cover so many channels: two vectors, one, or half a one.
  double covered(double channels) const {
    const double half = std::max(lanes / 2, 1.0), full = 2 * lanes;
    const double whole = std::floor(channels / full) * full, rest = channels - whole;
    if (rest == 0) return whole;
    return whole + (rest <= lanes + half ? rounded_up(rest, half) : full);
  }
  // Elements of grad_weight, by how far apart they are stored: tap by tap, and the more taps there are, the
  // smaller the part of a line of memory that is written at once.
  double stored_apart() const {
    const double part = std::min(taps / 128, 1.0);
    return x * y * taps * part * part;
  }
  Effort with(double operations, double calls) const {
    return {.operations = operations, .bytes = own.bytes, .launches = 1, .calls = calls};
  }

  Effort own;  // of the pass itself
  double lanes;
  double batch, groups, x, y;  // channels are those of a group
  double result, source;       // channels
  double positions;            // of the result; grad_weight: of y
  double row, phase_row, rows;
  double taps = 1, tap_rows = 1, phases = 1;
  double sixteen_bits = 0;  // 1: the result's elements are no FP32
  double products;          // operations of one pair of channels in every group
};

constexpr double kGroupCalls = 4;  // what a group costs beside its tiles

double dense_gather_calls(const Shape& s) {
  // A phase of the stride packs its own taps: of the lines of memory that it reads it needs a part.
  const double packing = s.source * s.result * s.taps / 128 * (0.75 + std::min(s.phases, 16.0) / 4);
  // And its results lie apart.
  const double scattered = s.phases > 1 ? s.positions * s.result / 32 : 0;
  return s.groups * (kGroupCalls + (s.positions / 6 + s.phases) * std::ceil(s.result / (2 * s.lanes)) +
                     packing + scattered);
}
double dense_grad_weight_calls(const Shape& s) {
  const double storing =
      0.6 * s.stored_apart() + (s.taps > 1 ? s.sixteen_bits * 0.15 * s.x * s.y * s.taps : 0);
  return s.groups * (kGroupCalls + storing +
                     s.taps * std::ceil(std::min(s.x, s.y) / 8) *
                         std::ceil(std::max(s.x, s.y) / (2 * s.lanes)) * std::max(1.0, s.rows / 16));
}

}  // namespace

Effort dense_gather_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  return s.with(s.products * s.covered(s.result) * (s.source + 2 / s.taps), dense_gather_calls(s));
}
Effort amx_gather_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  return s.with(
      s.products * s.covered(s.result) * rounded_up(s.source, 16) * rounded_up(s.phase_row, 8) / s.phase_row,
      dense_gather_calls(s));
}
Effort pointwise_gather_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  return s.with(s.products * rounded_up(s.result, 2) * (s.source + 2),
                s.groups * (kGroupCalls + std::ceil(s.result / 6) * s.positions / s.lanes / 8 +
                            (s.phases > 1 ? 4.5 * s.result * s.rows : 0)));  // rows with zeros between
}
Effort few_channels_gather_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  // Where there are few registers, more than six results of one tap read their source again and again.
  const double again = machine.cpu.vector_registers < 32 && s.result > 6 && s.taps == 1 ? 2 : 1;
  return s.with(again * s.products * s.x * s.y * rounded_up(s.phase_row, s.lanes) / s.phase_row,
                s.groups * (kGroupCalls + s.rows * std::ceil(s.result / 12) * (1 + s.source / 10)));
}

Effort dense_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  return s.with(s.products * s.covered(std::max(s.x, s.y)) * (std::min(s.x, s.y) + 1),
                dense_grad_weight_calls(s));
}
Effort amx_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  // An image without a partner takes as long as two.
  return s.with(s.products * s.covered(std::max(s.x, s.y)) * rounded_up(std::min(s.x, s.y), 16) *
                    rounded_up(s.row, 8) / s.row * rounded_up(s.batch, 2) / s.batch,
                dense_grad_weight_calls(s));
}
Effort amx_places_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  const auto& p = std::get<ConvPass>(pass);
  const problem::Window& last = p.axes[2];
  // Places behind a row, which add nothing.
  const double halo = static_cast<double>(last.kernel - 1) * static_cast<double>(last.dilation) /
                      static_cast<double>(last.stride);
  const double multiplied = s.products * rounded_up(s.y, 16) * std::max(s.x, 16 / s.taps) *
                            (1 + halo / s.row) * rounded_up(s.positions, 32) / s.positions;
  // Numbers are copied in vectors where channels lie side by side, row by row where places do: those of x
  // with the rows of the halo, for every residue of the strides.
  double places = s.batch, x_rows = s.batch;
  for (size_t i = 0; i < 3; ++i) {
    const problem::Window& w = p.axes[i];
    places *= static_cast<double>(w.kernel == 1 ? w.y : std::min(w.x, w.y * w.stride));
    x_rows *= static_cast<double>(std::min(w.kernel, w.stride));
    if (i < 2)
      x_rows *= static_cast<double>(w.y) + static_cast<double>(w.kernel - 1) *
                                               static_cast<double>(w.dilation) /
                                               static_cast<double>(w.stride);
  }
  const bool joins = s.taps == 1 && last.stride == 1;
  const double rows =
      joins ? s.batch
            : x_rows * (p.x.strides[1] == 1 ? 0.5 : s.x) + s.rows * (p.y.strides[1] == 1 ? 0.5 : s.y);
  const double copied = (s.x * places + s.y * s.positions) / 64 + 3 * rows;
  return s.with(multiplied, s.groups * (kGroupCalls + copied + s.x * s.y * s.taps / 20));
}
Effort stem_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  return s.with(s.products / s.taps * s.covered(s.y) * rounded_up(s.x * s.taps, 2),
                s.groups * (kGroupCalls + 0.06 * s.stored_apart() +
                            std::ceil(s.x * s.taps / 8) * std::ceil(s.y / (2 * s.lanes)) * s.rows));
}
Effort few_channels_grad_weight_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  return s.with(s.products * s.x * s.y * rounded_up(s.row, s.lanes) / s.row,
                s.groups * (kGroupCalls + s.rows * s.x * std::ceil(s.y / 8) * s.tap_rows));
}

Effort depthwise_planes_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  const double multiplied = s.groups * std::max(s.x, s.y), planes = s.batch * multiplied;
  const bool grad_weight = std::get<ConvPass>(pass).kind == ConvPassKind::kGradWeight;
  const double filled =
      grad_weight ? rounded_up(multiplied, s.lanes) / multiplied : rounded_up(planes, s.lanes) / planes;
  return s.with(s.products * std::max(s.x, s.y) * filled,
                std::ceil(multiplied / s.lanes) * (s.batch + s.rows));
}
Effort depthwise_rows_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  return s.with(s.products * rounded_up(s.row, s.lanes) / s.row, s.groups * (s.batch + s.rows));
}
Effort depthwise_channels_effort(const problem::Pass& pass, const Machine& machine) {
  const Shape s(pass, machine);
  return s.with(s.products * rounded_up(s.groups, s.lanes) / s.groups,
                std::ceil(s.groups / s.lanes) * s.rows);
}

}  // namespace retrograd::engines::cpu
