// SPDX-License-Identifier: Apache-2.0
// Which passes are run over cells, and how cells are read.
#include "engines/cpu/dense/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "engines/cpu/dense/dense_blocking.h"
#include "engines/cpu/dense/grad_weight_blocking.h"
#include "engines/cpu/gather_sides.h"
#include "kernels/cpu/dense/cell_pairs.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::CellFacts;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr int64_t kFewestChannels = 16;    // of one side, for tile registers
constexpr int64_t kFewestTileSources = 4;  // channels to add over in tile registers
constexpr int64_t kHalfVector = 8;         // of channels, where half empty vectors still gain
constexpr int64_t kSmallestPlane = 8;      // rows of fewer numbers take longer to pair than to multiply
constexpr int64_t kShortestRow = 6;        // of places that tile registers add over
constexpr int64_t kFewestImages = 7;       // an odd number of fewer wastes much of the last pair
constexpr double kLeastPaired = 0.75;      // of the cells of paired places: numbers of x that lie inside
constexpr int64_t kBytes = sizeof(uint16_t);

// The partner of the number at `low`, null: it has none.
const std::byte* half_at(const std::byte* low, int64_t partner) {
  return partner == kNoPartner ? nullptr : low + partner * kBytes;
}

bool is_grad_weight(const ConvPass& p) { return p.kind == ConvPassKind::kGradWeight; }

// The tensor as one of cells where numbers that share one lie side by side; nullopt where they do not.
std::optional<PassTensor> as_cells(const PassTensor& tensor, int64_t partner, const std::byte* source,
                                   const StripShape& shape) {
  if (partner != 1 || reinterpret_cast<uintptr_t>(source) % sizeof(float) != 0) return std::nullopt;
  PassTensor cells{tensor.operand, DType::kF32, {}};
  for (size_t i = 1; i < 5; ++i) {
    const bool counts = i == 1 ? shape.channels > 1 : shape.extent[i - 2] > 1 || shape.start[i - 2] != 0;
    if (!counts) continue;
    if (tensor.strides[i] % 2 != 0) return std::nullopt;
    cells.strides[i] = tensor.strides[i] / 2;
  }
  return cells;
}

// A tensor whose pairs lie along an axis as one of cells, where the numbers of a pair lie side by side;
// nullopt: they do not. An axis of one place may have any stride.
std::optional<PassTensor> tensor_of_cells(PassTensor tensor, size_t paired,
                                          const std::array<int64_t, 5>& sizes) {
  if (tensor.strides[paired] != 2) return std::nullopt;
  for (size_t i = 0; i < 5; ++i) {
    if (sizes[i] > 1 && tensor.strides[i] % 2 != 0) return std::nullopt;
    tensor.strides[i] = sizes[i] > 1 || i == paired ? tensor.strides[i] / 2 : 0;
  }
  tensor.dtype = DType::kF32;
  return tensor;
}
std::optional<PassTensor> source_of_cells(const ConvPass& p) {
  const auto& [d, h, w] = p.axes;
  const int64_t channels = source_channels(p) * p.groups;
  return is_forward(p) ? tensor_of_cells(p.x, 1, {p.batch, channels, d.x, h.x, w.x})
                       : tensor_of_cells(p.y, 1, {p.batch, channels, d.y, h.y, w.y});
}
std::optional<PassTensor> weights_of_cells(const ConvPass& p) {
  return tensor_of_cells(
      p.w, is_forward(p) ? 1 : 0,
      {p.y_channels, p.x_channels_per_group(), p.axes[0].kernel, p.axes[1].kernel, p.axes[2].kernel});
}

// The share of products with numbers inside of x where the places of an axis are paired, one half with the
// other: every tap meets every place then.
double share_inside(const problem::Window& w) {
  constexpr int64_t kMostTaps = 64;
  if (w.y < 2 || w.kernel > kMostTaps) return 0;
  int64_t inside = 0;
  for (int64_t tap = 0; tap < w.kernel; ++tap) inside += live_outputs(w, tap).size();
  return static_cast<double>(inside) / static_cast<double>(w.kernel * (w.y + w.y % 2));
}

// The axis whose places are paired: of D and H the one that wastes less, W where both waste much, so that
// rows stay long; nothing where W does, too.
std::optional<size_t> paired_axis(const ConvPass& pass) {
  const double d = share_inside(pass.axes[0]), h = share_inside(pass.axes[1]);
  if (std::max(d, h) > kLeastPaired) return d > h ? 0 : 1;
  if (share_inside(pass.axes[2]) > kLeastPaired) return 2;
  return std::nullopt;
}

// Whether places are paired instead of images, of which the last would have no partner.
bool pairs_places(const ConvPass& pass, bool tiles) {
  return is_grad_weight(pass) && !tiles && pass.batch % 2 != 0 && pass.batch < kFewestImages;
}

ConvPass with_long_rows(const ConvPass& pass) { return joined_rows(without_idle_places(pass)); }

// The type that both operands have, if they have one.
std::optional<DType> operands_type(const ConvPass& pass) {
  const DType a = is_grad_weight(pass) ? pass.x.dtype : source_of(pass).dtype;
  const DType b = is_grad_weight(pass) ? pass.y.dtype : pass.w.dtype;
  return a == b ? std::optional(a) : std::nullopt;
}

// Why the pass, on any machine, has no use for pairs. An image too many may be paired with none.
std::optional<Reason> unfit_for_pairs(const ConvPass& pass, bool tiles) {
  const int64_t x = pass.x_channels_per_group(), y = pass.y_channels_per_group();
  const int64_t plane = pass.axes[0].y * pass.axes[1].y * pass.axes[2].y;
  if (is_grad_weight(pass) && plane > 1 && plane < kSmallestPlane)
    return fmt::format("planes of {} places are too small for pairs", plane);
  if (pairs_places(pass, tiles) && !paired_axis(with_long_rows(pass)))
    return fmt::format("{} images are no pairs, nor are their places", pass.batch);
  const CellPass cells = pass_over_cells(pass, tiles);
  const char* const few = "a group has too few channels to fill a vector with them";
  if (is_grad_weight(pass)) {
    if (tiles ? std::min(x, y) < kFewestChannels : std::max(x, y) < kHalfVector) return few;
  } else if (tiles) {
    // Registers are so fast that they may be nearly empty along one side.
    if (std::max(x, y) < kFewestChannels || source_channels(pass) < kFewestTileSources) return few;
  } else {
    if (result_channels(pass) < kHalfVector || source_channels(pass) == 1) return few;
  }
  // A partner at distance 0 would read as none at all.
  if ((is_grad_weight(pass) ? cells.x : cells.w) == 0 ||
      (is_grad_weight(pass) || !is_forward(pass) ? cells.y : cells.x) == 0)
    return "numbers of a pair lie in one place";
  return std::nullopt;
}

}  // namespace

std::optional<Reason> unfit_for_bf16_pairs(const ConvPass& pass, const Machine& machine) {
  if (!machine.cpu.bf16_pairs) return "this machine has no fast products of bf16 pairs";
  if (operands_type(pass) != DType::kBF16) return "the operands are not both bf16";
  if (pass.rounding == OperandRounding::kF16) return "the operands are rounded to f16";
  return std::nullopt;
}

std::optional<Reason> unfit_for_cells(const ConvPass& pass, const Machine& machine) {
  if (auto reason = unfit_for_bf16_pairs(pass, machine)) return reason;
  return unfit_for_pairs(pass, false);
}

std::optional<Reason> unfit_for_tile_types(const ConvPass& pass, const Machine& machine) {
  if (!machine.cpu.bf16_tiles) return "this machine has no tile registers";
  const std::optional<DType> type = operands_type(pass);
  if (type != DType::kBF16 && type != DType::kF16) return "the operands are not both bf16, nor both f16";
  const bool f16 = type == DType::kF16;
  if (f16 && !machine.cpu.f16_tiles) return "this machine has no tiles of f16 products";
  // Numbers of the type are what rounding leaves as they are: HF32 has more bits than BF16.
  if (pass.rounding != OperandRounding::kNone && (pass.rounding == OperandRounding::kF16) != f16)
    return f16 ? "the operands are rounded" : "the operands are rounded to f16";
  return std::nullopt;
}

std::optional<Reason> unfit_for_tiles(const ConvPass& pass, const Machine& machine) {
  if (auto reason = unfit_for_tile_types(pass, machine)) return reason;
  if (auto reason = unfit_for_pairs(pass, true)) return reason;
  const int64_t row = joined_rows(without_idle_places(pass)).axes[2].y;
  if (is_grad_weight(pass) && row < kShortestRow)
    return fmt::format("rows of {} places are too short for tiles", row);
  return std::nullopt;
}

CellPass pass_over_cells(const ConvPass& pass, bool tiles) {
  CellPass cells{
      .pass = pass, .tiles = tiles, .type = cell_type(is_grad_weight(pass) ? pass.y.dtype : pass.w.dtype)};
  ConvPass& p = cells.pass;
  p.rounding = OperandRounding::kNone;  // which would leave numbers of the type as they are
  const auto pair = [](PassTensor& tensor, size_t axis, int64_t& partner) {
    partner = tensor.strides[axis];
    tensor.strides[axis] *= 2;
  };
  if (pairs_places(pass, tiles)) {
    p = with_long_rows(p);
    const size_t axis = paired_axis(p).value_or(0);
    problem::Window& w = p.axes[axis];
    const int64_t half = (w.y + 1) / 2;
    cells.x_places = {.axis = axis, .shift = half * w.stride, .size = w.x, .pad = w.pad_lo};
    cells.y_places = {.axis = axis, .shift = half, .size = w.y};
    cells.x = cells.x_places.shift * p.x.strides[axis + 2];
    cells.y = cells.y_places.shift * p.y.strides[axis + 2];
    w.x = (half - 1) * w.stride + (w.kernel - 1) * w.dilation + 1;
    w.y = half;
    w.pad_lo = 0;
  } else if (is_grad_weight(pass)) {
    cells.rest = p.batch % 2 != 0;
    p.batch = (p.batch + 1) / 2;
    pair(p.x, 0, cells.x);
    pair(p.y, 0, cells.y);
  } else if (is_forward(pass)) {
    cells.rest = pass.x_channels_per_group() % 2 != 0;
    p.x_channels = p.groups * ceil_div(pass.x_channels_per_group(), 2);
    pair(p.x, 1, cells.x);
    pair(p.w, 1, cells.w);
  } else {
    cells.rest = pass.y_channels_per_group() % 2 != 0;
    p.y_channels = p.groups * ceil_div(pass.y_channels_per_group(), 2);
    pair(p.y, 1, cells.y);
    pair(p.w, 0, cells.w);
  }
  if (is_grad_weight(pass) || cells.rest) return cells;
  if (const auto weights = weights_of_cells(p)) {
    p.w = *weights;
    cells.weights_together = true;
  }
  if (const auto source = source_of_cells(p)) {
    (is_forward(p) ? p.x : p.y) = *source;
    cells.together = true;
  }
  return cells;
}

namespace {

// Rows of numbers that are paired, `step` numbers apart, and of their cells, `pitch` apart.
struct HalfRows {
  int64_t rows = 1, step = 0, pitch = 0;
};

// out[r·pitch + i] = (low[r·step + i·stride], high[r·step + i·stride]), i < count; a null half is zeros.
CellFacts load_halves(DType dtype, const std::byte* low, const std::byte* high, int64_t stride, int64_t count,
                      float* out, const HalfRows& r = {}) {
  if (stride == 1)
    return kernels::cpu::pair_rows({.low = low,
                                    .high = high,
                                    .step = r.step,
                                    .rows = r.rows,
                                    .count = count,
                                    .out = out,
                                    .pitch = r.pitch,
                                    .type = cell_type(dtype)});
  // Numbers that lie apart make cells one by one, which are looked at together.
  const auto make_cells = [&](const auto& cell_at) {
    for (int64_t row = 0; row < r.rows; ++row)
      for (int64_t i = 0; i < count; ++i)
        out[row * r.pitch + i] = std::bit_cast<float>(cell_at((row * r.step + i * stride) * kBytes));
  };
  const auto code = [](const std::byte* from) {
    uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    return uint32_t{bits};
  };
  if (high == nullptr)
    make_cells([&](int64_t at) { return code(low + at); });
  else if (low == nullptr)
    make_cells([&](int64_t at) { return code(high + at) << 16; });
  else if (stride == 2 && count > 0) {
    // But for the last one, numbers are read with their neighbours: compilers make vectors of it.
    const auto pair = [](const std::byte* from) {
      uint32_t bits = 0;
      std::memcpy(&bits, from, sizeof bits);
      return bits;
    };
    for (int64_t row = 0; row < r.rows; ++row) {
      const std::byte *const l = low + row * r.step * kBytes, *const h = high + row * r.step * kBytes;
      float* const cells = out + row * r.pitch;
      for (int64_t i = 0; i < count - 1; ++i)
        cells[i] = std::bit_cast<float>((pair(l + 4 * i) & 0xFFFF) | pair(h + 4 * i) << 16);
      const int64_t last = (count - 1) * 4;
      cells[count - 1] = std::bit_cast<float>(code(l + last) | code(h + last) << 16);
    }
  } else if (high == low + kBytes)  // a cell as it lies
    make_cells([&](int64_t at) {
      uint32_t bits = 0;
      std::memcpy(&bits, low + at, sizeof bits);
      return bits;
    });
  else
    make_cells([&](int64_t at) { return code(low + at) | code(high + at) << 16; });
  return kernels::cpu::judge_cells(out, r.pitch, r.rows, count, cell_type(dtype));
}

// body(i, count, low, high) for runs of places i of which the same numbers are inside of the axis, of
// `count` places from `index` on that are `step` (0 or 1) apart.
template <class Body>
void for_each_run(const PairedPlaces& places, int64_t index, int64_t step, int64_t count, const Body& body) {
  const auto inside = [&](int64_t at) { return at >= 0 && at < places.size; };
  for (int64_t i = 0, part = 0; i < count; i += part) {
    const int64_t low = index + i * step, high = low + places.shift;
    part = count - i;
    if (step != 0)
      for (const int64_t end : {-low, places.size - low, -high, places.size - high})
        if (end > 0) part = std::min(part, end);
    body(i, part, inside(low), inside(high));
  }
}

}  // namespace

bool load_cells(DType dtype, const std::byte* source, int64_t partner, int64_t stride, int64_t count,
                float* out) {
  return load_halves(dtype, source, half_at(source, partner), stride, count, out).large;
}

bool load_cell_rows(DType dtype, const std::byte* source, int64_t partner, int64_t step, int64_t rows,
                    int64_t count, float* out, int64_t pitch) {
  return load_halves(dtype, source, half_at(source, partner), 1, count, out, {rows, step, pitch}).large;
}

bool load_paired(const PassTensor& tensor, const PairedPlaces& places, const std::byte* source, int64_t index,
                 int64_t step, int64_t stride, int64_t count, int64_t channels, float* out, int64_t pitch) {
  const int64_t partner = places.shift * tensor.strides[places.axis + 2];
  CellFacts facts;
  for_each_run(places, index, step, count, [&](int64_t i, int64_t part, bool low, bool high) {
    const std::byte* const from = source + i * stride * kBytes;
    if (low || high)
      facts &=
          load_halves(tensor.dtype, low ? from : nullptr, high ? half_at(from, partner) : nullptr, stride,
                      part, out + i, {.rows = channels, .step = tensor.strides[1], .pitch = pitch});
    else
      for (int64_t c = 0; c < channels; ++c) std::fill_n(out + c * pitch + i, part, 0.0F);
  });
  return facts.large && facts.finite;
}

bool load_paired_rows(const PassTensor& tensor, const PairedPlaces& places, const std::byte* source,
                      int64_t index, int64_t step, int64_t rows, int64_t count, float* out, int64_t pitch) {
  const int64_t partner = places.shift * tensor.strides[places.axis + 2], row = tensor.strides[4];
  CellFacts facts;
  for_each_run(places, index, step, rows, [&](int64_t r, int64_t part, bool low, bool high) {
    if (!low && !high) {
      for (int64_t i = r; i < r + part; ++i) std::fill_n(out + i * pitch, count, 0.0F);
      return;
    }
    const std::byte* const from = source + r * row * kBytes;
    facts &= load_halves(tensor.dtype, low ? from : nullptr, high ? half_at(from, partner) : nullptr, 1,
                         count, out + r * pitch, {part, row, pitch});
  });
  return facts.large && facts.finite;
}

bool load_cell_strip(const PassTensor& tensor, int64_t partner, const std::byte* source,
                     const StripShape& shape, float* out) {
  if (const auto cells = as_cells(tensor, partner, source, shape)) {
    load_strip(*cells, OperandRounding::kNone, source, shape, out);
    return kernels::cpu::judge_cells(out, 0, 1, shape.channels * shape.plane(), cell_type(tensor.dtype))
        .large;
  }
  std::array<int64_t, 3> begin, end;
  bool whole = tensor.strides[4] == 1;  // every place is there, one behind the other
  int64_t run = 1;
  for (size_t axis = 3; axis-- > 0;) {
    whole &= shape.start[axis] >= 0 && shape.start[axis] + shape.extent[axis] <= shape.size[axis] &&
             (shape.extent[axis] == 1 || tensor.strides[axis + 2] == run);
    run *= shape.extent[axis];
  }
  if (whole) {
    const auto& s = tensor.strides;
    const int64_t at = shape.start[0] * s[2] + shape.start[1] * s[3] + shape.start[2];
    return load_cell_rows(tensor.dtype, source + at * kBytes, partner, s[1], shape.channels, run, out, run);
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    begin[axis] = std::clamp<int64_t>(-shape.start[axis], 0, shape.extent[axis]);
    end[axis] = std::clamp(shape.size[axis] - shape.start[axis], begin[axis], shape.extent[axis]);
  }
  const auto& s = tensor.strides;
  const int64_t width = shape.extent[2];
  // Rows that follow each other on both sides are one.
  const bool joined = end[2] - begin[2] == width && s[3] == width * s[4] && begin[1] < end[1];
  bool large = true;
  for (int64_t c = 0; c < shape.channels; ++c)
    for (int64_t d = 0; d < shape.extent[0]; ++d) {
      float* area = out + (c * shape.extent[0] + d) * shape.extent[1] * width;
      for (int64_t h = 0; h < shape.extent[1]; ++h) {
        float* row = area + h * width;
        if (d < begin[0] || d >= end[0] || h < begin[1] || h >= end[1]) {
          std::fill_n(row, width, 0.0F);
          continue;
        }
        std::fill_n(row, begin[2], 0.0F);
        std::fill_n(row + end[2], width - end[2], 0.0F);
        const int64_t at = c * s[1] + (shape.start[0] + d) * s[2] + (shape.start[1] + h) * s[3] +
                           (shape.start[2] + begin[2]) * s[4];
        const int64_t rows = joined ? end[1] - h : 1;
        large &= load_cells(tensor.dtype, source + at * static_cast<int64_t>(size_of(tensor.dtype)), partner,
                            s[4], joined ? rows * width : end[2] - begin[2], row + begin[2]);
        h += rows - 1;
      }
    }
  return large;
}

}  // namespace retrograd::engines::cpu
