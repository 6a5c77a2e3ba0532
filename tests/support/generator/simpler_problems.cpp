// SPDX-License-Identifier: Apache-2.0
// What may be dropped from a failing problem while it still fails.
#include <algorithm>
#include <bit>

#include "support/generator/problem_sketch.h"

namespace retrograd::test {
namespace {

using problem::Operand;

class Steps {
 public:
  explicit Steps(const ProblemSketch& from) : from_(from) {}

  template <class Change>
  void add(Change change) {
    ProblemSketch simpler = from_;
    change(simpler);
    if (to_request(simpler)) all_.push_back(std::move(simpler));
  }
  // Tries 1, then the half, then one less.
  template <class Field>
  void lower(Field field, int64_t least = 1) {
    const int64_t now = field(from_);
    for (int64_t to : {least, now / 2, now - 1})
      if (to >= least && to < now) add([&](ProblemSketch& s) { field(s) = to; });
  }
  std::vector<ProblemSketch> take() && { return std::move(all_); }

 private:
  ProblemSketch from_;  // a copy: `lower` hands references to its fields out
  std::vector<ProblemSketch> all_;
};

void drop_axes(const ProblemSketch& from, Steps& steps) {
  for (size_t a = 0; a < from.axes.size() && from.axes.size() > 1; ++a)
    steps.add([&](ProblemSketch& s) {
      s.axes.erase(s.axes.begin() + static_cast<ptrdiff_t>(a));
      // The tensors lose an axis: a layout that names axes would mean others.
      for (LayoutSketch& layout : s.layouts) {
        const unsigned dropped = 2 + static_cast<unsigned>(a);
        const auto without = [&](unsigned bits) {
          return (bits & ((1U << dropped) - 1)) | (bits >> (dropped + 1) << dropped);
        };
        layout.reversed = without(layout.reversed);
        layout.broadcast = without(layout.broadcast);
        layout.overlapping = without(layout.overlapping);
      }
    });
}

void lower_axes(const ProblemSketch& from, Steps& steps) {
  for (size_t a = 0; a < from.axes.size(); ++a) {
    steps.lower([a](ProblemSketch& s) -> int64_t& { return s.axes[a].size; });
    steps.lower([a](ProblemSketch& s) -> int64_t& { return s.axes[a].kernel; });
    steps.lower([a](ProblemSketch& s) -> int64_t& { return s.axes[a].stride; });
    steps.lower([a](ProblemSketch& s) -> int64_t& { return s.axes[a].dilation; });
    if (from.axes[a].pad_lo > 0 || from.axes[a].pad_hi > 0) {
      steps.add([a](ProblemSketch& s) { s.axes[a].pad_lo = s.axes[a].pad_hi = 0; });
      steps.add([a](ProblemSketch& s) { s.axes[a].pad_lo = s.axes[a].pad_hi = s.axes[a].pad_hi / 2; });
    }
    if (from.axes[a].pad_lo != from.axes[a].pad_hi)
      steps.add([a](ProblemSketch& s) { s.axes[a].pad_lo = s.axes[a].pad_hi; });
    if (from.axes[a].extra_lo > 0 || from.axes[a].extra_hi > 0)
      steps.add([a](ProblemSketch& s) { s.axes[a].extra_lo = s.axes[a].extra_hi = 0; });
  }
}

void drop_layouts(const ProblemSketch& from, Steps& steps) {
  for (size_t i = 0; i < from.layouts.size(); ++i) {
    const LayoutSketch& now = from.layouts[i];
    if (now == LayoutSketch{}) continue;
    steps.add([i](ProblemSketch& s) { s.layouts[i] = {}; });
    const auto drop_bits = [&](unsigned LayoutSketch::*bits) {
      for (unsigned bit = 1; bit < 1U << 5U; bit *= 2)
        if ((now.*bits & bit) != 0) steps.add([=](ProblemSketch& s) { s.layouts[i].*bits &= ~bit; });
    };
    drop_bits(&LayoutSketch::reversed);
    drop_bits(&LayoutSketch::broadcast);
    drop_bits(&LayoutSketch::overlapping);
    if (now.gaps != LayoutSketch{}.gaps) steps.add([i](ProblemSketch& s) { s.layouts[i].gaps = {}; });
    if (now.step > 1) steps.add([i](ProblemSketch& s) { s.layouts[i].step = 1; });
    if (now.lone_strides) steps.add([i](ProblemSketch& s) { s.layouts[i].lone_strides = false; });
    if (now.order == LayoutSketch::Order::kGiven)
      steps.add([i](ProblemSketch& s) { s.layouts[i].order = LayoutSketch::Order::kRowMajor; });
  }
}

}  // namespace

std::vector<ProblemSketch> simpler_than(const ProblemSketch& from) {
  Steps steps(from);
  if (from.kind == ProblemKind::kConv && std::popcount(from.mask) > 1)
    for (const unsigned alone : {1U, 2U, 4U})
      if ((from.mask & alone) != 0) steps.add([&](ProblemSketch& s) { s.mask = alone; });
  if (from.bias) steps.add([](ProblemSketch& s) { s.bias = false; });
  steps.lower([](ProblemSketch& s) -> int64_t& { return s.batch; });
  drop_axes(from, steps);
  steps.lower([](ProblemSketch& s) -> int64_t& { return s.groups; });
  steps.lower([](ProblemSketch& s) -> int64_t& { return s.inputs; });
  steps.lower([](ProblemSketch& s) -> int64_t& { return s.outputs; });
  drop_layouts(from, steps);
  if (from.types != ProblemSketch{}.types) steps.add([](ProblemSketch& s) { s.types = {}; });
  if (std::any_of(from.types.begin(), from.types.end(), [&](DType t) { return t != from.types[1]; }))
    steps.add([](ProblemSketch& s) { s.types.fill(s.type(Operand::kInput)); });
  if (from.math_mode != 0) steps.add([](ProblemSketch& s) { s.math_mode = 0; });
  if (from.winograd) steps.add([](ProblemSketch& s) { s.winograd = false; });
  if (from.transposed)
    steps.add([](ProblemSketch& s) {
      s.transposed = false;
      for (AxisSketch& a : s.axes) a.extra_lo = a.extra_hi = 0;
    });
  lower_axes(from, steps);
  if (from.kind == ProblemKind::kAvgPool) {
    if (from.ceil_mode) steps.add([](ProblemSketch& s) { s.ceil_mode = s.uncorrected_ceil_sizes = false; });
    if (from.divisor > 1) steps.add([](ProblemSketch& s) { s.divisor = 0; });
    if (!from.count_include_pad) steps.add([](ProblemSketch& s) { s.count_include_pad = true; });
    if (from.without_batch) steps.add([](ProblemSketch& s) { s.without_batch = false; });
  }
  return std::move(steps).take();
}

}  // namespace retrograd::test
