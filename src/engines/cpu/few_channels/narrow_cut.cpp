// SPDX-License-Identifier: Apache-2.0
// Cutting a pass for narrow_gather.
#include "engines/cpu/few_channels/narrow_cut.h"

#include <algorithm>
#include <tuple>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/taps.h"
#include "kernels/cpu/layout/row_copy.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

constexpr int64_t kLineFloats = 16;
constexpr int64_t kFloatsInL1 = 6144;    // of weights and rows that one call of the kernel goes through
constexpr int64_t kStripFloats = 49152;  // of one task: with the sums it stays in L2
constexpr int64_t kSumFloats = 98304;
constexpr int64_t kResultsPerTask = 384;
constexpr int64_t kFewestPositions = 128, kEnoughPositions = 256;
constexpr int64_t kTaskProducts = 1 << 19;   // about 10 us: less is not worth handing out
constexpr int64_t kPositionsPerTask = 2048;  // small planes are handed out together
constexpr int64_t kWantedTasks = 16;         // enough for the threads to share evenly

constexpr int64_t kInPlaceForEdge = 8;  // positions read in place for each that is copied

int64_t in_lines(int64_t floats) { return ceil_div(floats, kLineFloats) * kLineFloats; }

template <class Container>
int64_t size_of_list(const Container& list) {
  return static_cast<int64_t>(list.size());
}

// body(fold of D, fold of H, fold of W), the last fastest.
template <class Body>
void each_product(const NarrowCut& cut, const Body& body) {
  for (const AxisFold& d : cut.folds[0])
    for (const AxisFold& h : cut.folds[1])
      for (const AxisFold& w : cut.folds[2]) body(d, h, w);
}

// A single result uses what it reads once, and where vectors are as long as a line of the cache, reading one
// from any place takes two cycles: rows of the result are computed in pairs, though a quarter of the products
// of three taps are then made for nothing. 0.68 ms became 0.60 for unet3d_first_1_16_32cube.
void pair_rows(const VectorShape& sums, NarrowCut& cut) {
  if (cut.channels > 1 || sums.row_overrun() < kLineFloats || cut.folds[1].size() > 1) return;
  AxisFold& h = cut.folds[1].front();
  if (h.residues.size() > 1 || h.step > 1 || h.source_step > 1 || h.offsets.size() < 2 || h.count < 4) return;
  AxisFold pairs = in_pairs(h);
  if (pairs.offsets.size() > h.offsets.size() + 1) return;  // dilated: hardly anything serves both
  h = std::move(pairs);
  cut.pads_weights = true;
}

void list_units(const ConvPass& pass, NarrowCut& cut) {
  cut.units.reserve(static_cast<size_t>(cut.channels));  // all there are, but for strides
  for (const AxisFold& d : cut.folds[0])
    for (const AxisFold& h : cut.folds[1])
      for (int64_t channel = 0; channel < cut.channels; ++channel)
        for (const FoldedResidue& rd : d.residues)
          for (const FoldedResidue& rh : h.residues) cut.units.push_back({channel, rd, rh, 0});
  for (const AxisFold& w : cut.folds[2])
    cut.ways.insert(cut.ways.end(), w.residues.begin(), w.residues.end());
  cut.woven = is_forward(pass) || size_of_list(cut.ways) == pass.axes[2].stride;
  const int64_t units = size_of_list(cut.units);
  const int64_t parts = ceil_div(units * size_of_list(cut.ways), kResultsPerTask);
  cut.units_per_part = ceil_div(units, std::min(parts, units));
}

void order_units(NarrowCut& cut) {
  cut.store_order.resize(cut.units.size());
  for (size_t i = 0; i < cut.units.size(); ++i) {
    cut.units[i].row = static_cast<int64_t>(i) % cut.units_per_part;
    cut.store_order[i] = i;
  }
  const auto place_of = [&](size_t i) {
    const NarrowUnit& unit = cut.units[i];
    return std::tuple(static_cast<int64_t>(i) / cut.units_per_part, unit.channel, unit.d.first, unit.h.first);
  };
  std::sort(cut.store_order.begin(), cut.store_order.end(),
            [&](size_t a, size_t b) { return place_of(a) < place_of(b); });
}

// The calls of the units `first` to `last` of one pair of folds of D and H, whose first unit is `pair` and
// whose products start at `product`. `part` is the first unit of the part.
void list_calls_of_pair(int64_t first, int64_t last, int64_t pair, int64_t part, size_t product,
                        NarrowCut& cut) {
  const auto most = static_cast<int64_t>(cut.vectors.row_results());
  int64_t way = 0;
  for (const AxisFold& w : cut.folds[2]) {
    const NarrowProduct& p = cut.products[product];
    const int64_t residues = size_of_list(w.residues), stop = (last - pair) * residues;
    int64_t result = (first - pair) * residues;
    for (int64_t calls = ceil_div(stop - result, most); calls > 0; --calls) {
      const int64_t count = ceil_div(stop - result, calls);
      const int64_t unit = pair + result / residues - part;
      cut.calls.push_back({product, result, count, cut.group_weights,
                           unit * size_of_list(cut.ways) + way + result % residues});
      cut.group_weights += count * cut.source_channels * p.terms();
      result += count;
    }
    way += residues;
    ++product;
  }
}

void list_calls(NarrowCut& cut) {
  const int64_t units = size_of_list(cut.units);
  for (int64_t part = 0; part < units; part += cut.units_per_part) {
    cut.first_call.push_back(cut.calls.size());
    int64_t pair = 0;
    size_t product = 0;
    for (const AxisFold& d : cut.folds[0])
      for (const AxisFold& h : cut.folds[1]) {
        const int64_t in_pair = cut.channels * size_of_list(d.residues) * size_of_list(h.residues);
        const int64_t first = std::max(pair, part),
                      last = std::min({pair + in_pair, part + cut.units_per_part, units});
        if (first < last) list_calls_of_pair(first, last, pair, part, product, cut);
        pair += in_pair;
        product += cut.folds[2].size();
      }
  }
  cut.first_call.push_back(cut.calls.size());
}

// Source channels whose weights and rows one call of the kernel finds in L1 again.
int64_t channels_in_l1(const NarrowCut& cut) {
  int64_t most = 1;
  each_product(cut, [&](const AxisFold& d, const AxisFold& h, const AxisFold& w) {
    const int64_t across = size_of_list(w.offsets);
    const int64_t rows = size_of_list(d.offsets) * size_of_list(h.offsets) * std::min(across, w.source_step);
    const int64_t results =
        cut.channels * size_of_list(d.residues) * size_of_list(h.residues) * size_of_list(w.residues);
    const int64_t block =
        ceil_div(results, ceil_div(results, static_cast<int64_t>(cut.vectors.row_results())));
    const int64_t row = cut.vectors.row_positions(static_cast<int>(block)) + kLineFloats;
    most = std::max(most, rows * row + rows * across * block);
  });
  return std::clamp<int64_t>(kFloatsInL1 / most, 1, cut.source_channels);
}

// A line of a channels-last source holds channels of several narrow groups, and is read once if they are
// turned over together: 1.9 ms became 0.9 for rnxt_g32_3x3_56_c128. Their sums are then written together
// too.
int64_t groups_of_a_line(const ConvPass& pass, const NarrowCut& cut, int64_t in_l1, int64_t positions) {
  if (!is_channels_last(source_of(pass)) || in_l1 < cut.source_channels || cut.parts() > 1 ||
      cut.folds[0].size() > 1 || cut.folds[1].size() > 1)
    return 1;
  const int64_t tasks = pass.groups * ceil_div(positions, kEnoughPositions);
  return std::max<int64_t>(1, std::min({kLineFloats / cut.source_channels, pass.groups, tasks / kWantedTasks,
                                        kResultsPerTask / cut.rows_per_part()}));
}

// What all folds of an axis read.
StripAxis strip_of(const std::vector<AxisFold>& folds) {
  StripAxis axis{.step = folds.front().source_step, .size = folds.front().source_size};
  bool any = false;
  for (const AxisFold& fold : folds) {
    if (fold.offsets.empty()) continue;
    axis.lowest_offset = any ? std::min(axis.lowest_offset, fold.lowest_offset()) : fold.lowest_offset();
    axis.highest_offset = any ? std::max(axis.highest_offset, fold.highest_offset()) : fold.highest_offset();
    any = true;
  }
  return axis;
}

void cut_positions(const ConvPass& pass, NarrowCut& cut) {
  Positions total{pass.batch, 1, 1, 1};
  std::array<StripAxis, 3> strip_axes;
  for (size_t axis = 0; axis < 3; ++axis) {
    for (const AxisFold& fold : cut.folds[axis]) total[axis + 1] = std::max(total[axis + 1], fold.count);
    strip_axes[axis] = strip_of(cut.folds[axis]);
  }
  const int64_t in_l1 = channels_in_l1(cut);
  const int64_t per_task = ceil_div(count_of(total) * pass.groups * cut.parts(), kWantedTasks);
  const int64_t fewest =
      std::clamp(kTaskProducts / std::max<int64_t>(cut.source_channels * cut.kernel_taps * cut.channels, 1),
                 kFewestPositions, kEnoughPositions);
  const int64_t wanted = std::min({kStripFloats / in_l1, kSumFloats / cut.rows_per_part(), per_task});
  cut.groups_at_once = groups_of_a_line(pass, cut, in_l1, count_of(total));
  cut.grid = cut_into_boxes({1, total[1], total[2], total[3]}, std::max(fewest, wanted / cut.groups_at_once));
  cut.grid.total[0] = cut.grid.boxes[0] = pass.batch;
  cut.strips = ResidueStrips(strip_axes, cut.grid.box);
  cut.channels_per_block = cut.groups_at_once > 1
                               ? cut.source_channels
                               : std::clamp<int64_t>(kStripFloats / cut.strips.channel_pitch(), 1, in_l1);
  cut.groups_per_task = std::max<int64_t>(1, kPositionsPerTask / count_of(cut.grid.box));
  cut.groups_per_task =
      std::min(cut.groups_per_task, std::max<int64_t>(1, pass.groups * cut.grid.count() / kWantedTasks));
  cut.groups_per_task = ceil_div(cut.groups_per_task, cut.groups_at_once) * cut.groups_at_once;
  cut.tasks = ceil_div(pass.groups, cut.groups_per_task) * cut.parts() * cut.grid.count();
}

void plan_in_place(const ConvPass& pass, NarrowCut& cut) {
  const problem::PassTensor& source = source_of(pass);
  const StripAxis d = strip_of(cut.folds[0]), h = strip_of(cut.folds[1]), w = strip_of(cut.folds[2]);
  const auto trivial = [](const StripAxis& a, int64_t positions) {
    return positions == 1 && a.size == 1 && a.step == 1 && a.lowest_offset == 0 && a.highest_offset == 0;
  };
  if (!is_plain(source, pass.rounding) || source.strides[4] != 1 || w.step != 1 || cut.group_weights == 0 ||
      !trivial(d, cut.grid.total[1]) || !trivial(h, cut.grid.total[2]))
    return;
  NarrowInPlace& in_place = cut.in_place;
  const int64_t behind = std::max<int64_t>(cut.grid.total[3] - (w.size - w.highest_offset), 0);
  in_place.edge = std::max(-w.lowest_offset, behind + cut.vectors.row_overrun());
  in_place.on = in_place.edge * kInPlaceForEdge <= cut.grid.box[3];
  if (!in_place.on) return;
  in_place.strips = ResidueStrips({d, h, w}, {1, 1, 1, in_place.edge});
  in_place.edge_channels =
      std::clamp<int64_t>(kStripFloats / in_place.strips.channel_pitch(), 1, cut.source_channels);
  int64_t weights = 1;
  for (const NarrowCall& call : cut.calls)
    weights = std::max(weights, call.count * cut.products[call.product].terms());
  in_place.channels = std::clamp<int64_t>(kFloatsInL1 / weights, 1, cut.source_channels);
}

void lay_out_sums(NarrowCut& cut) {
  const auto& box = cut.grid.box;
  // A wide dilation makes a pitch far beyond the row.
  const int64_t pitch = cut.strips.extent()[2];
  cut.whole_planes = 2 * pitch <= 3 * box[3];
  cut.row_pitch = cut.whole_planes ? pitch : in_lines(box[3] + cut.vectors.row_overrun());
  cut.plane_pitch = in_lines(box[2] * cut.row_pitch + cut.vectors.row_overrun());
  cut.out_pitch = box[1] * cut.plane_pitch;
}

// Taps of every residue and term, without the strips, which come later.
void list_taps(const ConvPass& pass, NarrowCut& cut) {
  each_product(cut, [&](const AxisFold& d, const AxisFold& h, const AxisFold& w) {
    NarrowProduct p;
    p.residues = size_of_list(d.residues) * size_of_list(h.residues) * size_of_list(w.residues);
    p.row_step = cut.folds[2].size() == 1 ? 1 : size_of_list(cut.ways);
    const size_t terms = d.offsets.size() * h.offsets.size() * w.offsets.size();
    p.offsets.resize(terms);
    p.tap_of.reserve(terms * static_cast<size_t>(p.residues));
    for (size_t rd = 0; rd < d.residues.size() && terms > 0; ++rd)
      for (size_t rh = 0; rh < h.residues.size(); ++rh)
        for (size_t rw = 0; rw < w.residues.size(); ++rw)
          for (size_t od = 0; od < d.offsets.size(); ++od)
            for (size_t oh = 0; oh < h.offsets.size(); ++oh)
              for (size_t ow = 0; ow < w.offsets.size(); ++ow) {
                const int64_t td = d.taps[rd * d.offsets.size() + od],
                              th = h.taps[rh * h.offsets.size() + oh],
                              tw = w.taps[rw * w.offsets.size() + ow];
                p.tap_of.push_back(th == kNoTap ? kNoTap
                                                : (td * pass.axes[1].kernel + th) * pass.axes[2].kernel + tw);
              }
    p.in_order =
        terms == 1 && p.residues == cut.kernel_taps && std::is_sorted(p.tap_of.begin(), p.tap_of.end());
    cut.leaves_source |= terms > 0 && (d.leaves_source() || h.leaves_source() || w.leaves_source());
    cut.products.push_back(std::move(p));
  });
}

void list_live(NarrowCut& cut) {
  if (!cut.pads_weights) return;
  for (NarrowCall& call : cut.calls) {
    const NarrowProduct& p = cut.products[call.product];
    call.live = size_of_list(cut.live);
    for (int64_t term = 0; term < p.terms(); ++term)
      for (int64_t i = 0; i < call.count; ++i) {
        const int64_t residue = (call.first + i) % p.residues;
        cut.live.push_back(p.tap_of[static_cast<size_t>(residue * p.terms() + term)] == kNoTap ? 0 : 1);
      }
  }
}

void list_offsets(NarrowCut& cut) {
  size_t product = 0;
  each_product(cut, [&](const AxisFold& d, const AxisFold& h, const AxisFold& w) {
    size_t term = 0;
    NarrowProduct& p = cut.products[product++];
    for (const int64_t od : d.offsets)
      for (const int64_t oh : h.offsets)
        for (const int64_t ow : w.offsets) p.offsets[term++] = cut.strips.offset_of({od, oh, ow});
  });
}

}  // namespace

void NarrowCut::spread_weights(const float* taps, int64_t k, int64_t count, float* weights) const {
  for (const NarrowCall& call : calls) {
    const NarrowProduct& p = products[call.product];
    const int64_t terms = p.terms();
    float* out = weights + call.weights + k * call.count * terms;
    if (p.in_order) {
      const float* first = taps + call.first / p.residues * kernel_taps + call.first % p.residues;
      kernels::cpu::copy_rows(first, channels * kernel_taps, out, call.count, count, call.count);
      continue;
    }
    for (int64_t row = 0; row < count; ++row, out += call.count * terms) {
      const float* channel = taps + (row * channels + call.first / p.residues) * kernel_taps;
      int64_t residue = call.first % p.residues;
      for (int64_t i = 0; i < call.count; ++i) {
        const int64_t* index = p.tap_of.data() + residue * terms;
        for (int64_t term = 0; term < terms; ++term)
          out[term * call.count + i] = index[term] == kNoTap ? 0.0F : channel[index[term]];
        if (++residue < p.residues) continue;
        residue = 0;
        channel += kernel_taps;
      }
    }
  }
}

NarrowCut plan_narrow(const ConvPass& pass, const VectorShape& vectors, const VectorShape& sums) {
  NarrowCut cut;
  cut.vectors = vectors;
  cut.kernel_taps = taps_of(pass);
  cut.channels = result_channels(pass);
  cut.source_channels = source_channels(pass);
  for (size_t axis = 0; axis < 3; ++axis)
    cut.folds[axis] = is_forward(pass) ? forward_folds(pass.axes[axis]) : grad_input_folds(pass.axes[axis]);
  pair_rows(sums, cut);
  list_units(pass, cut);
  order_units(cut);
  list_taps(pass, cut);
  list_calls(cut);
  list_live(cut);
  cut_positions(pass, cut);
  plan_in_place(pass, cut);
  lay_out_sums(cut);
  list_offsets(cut);
  return cut;
}

}  // namespace retrograd::engines::cpu
