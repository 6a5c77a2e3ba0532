// SPDX-License-Identifier: Apache-2.0
// Draws a class of shapes, sizes that fit its bounds, types, layouts; what is not legal is drawn again.
#include "support/generator/problem_generator.h"

#include <algorithm>
#include <stdexcept>

namespace retrograd::test {
namespace {

using Mode = GeneratorOptions::Mode;

void tbc_shape(Draw& draw, ProblemSketch& s) {
  s.batch = draw.number(1, 4);
  s.inputs = draw.chance(50) ? draw.number(1, 5) : draw.number(6, 40);
  s.outputs = draw.chance(50) ? draw.number(1, 5) : draw.number(6, 40);
  AxisSketch& axis = s.axes.emplace_back();
  axis.size = draw.number(1, 20);
  axis.kernel = draw.number(1, 7);
  axis.pad_lo = axis.pad_hi = draw.number(0, 4);
}
// A bias, mostly; and output padding beyond the stride, which the backward problem does not have.
void draw_forward(Draw& draw, Mode mode, ProblemSketch& s) {
  s.bias = draw.chance(mode == Mode::kTruth ? 60 : 30);
  if (mode != Mode::kTruth || !s.transposed) return;
  for (AxisSketch& a : s.axes)
    if (a.dilation > a.stride && draw.chance(30)) a.extra_hi = draw.number(a.stride, a.dilation - 1);
}

constexpr ShapeClass kTbc[] = {{"tbc", 1, tbc_shape}};

}  // namespace

// Bounds by halving: the batch of a network's problem is what they leave room for, and what is odd stays
// odd in most of its sizes.
bool ProblemGenerator::fit(ProblemSketch& s, double most_products) {
  const auto fits = [&](const ProblemSketch& sketch) {
    return products_of(sketch) <= most_products && elements_of(sketch) <= options_.most_elements;
  };
  for (int tries = 0; tries < 200 && !fits(s); ++tries) {
    ProblemSketch smaller = s;
    const int64_t which = draw_.number(0, 3 + static_cast<int64_t>(s.axes.size()));
    int64_t& size = which == 0   ? smaller.batch
                    : which == 1 ? smaller.groups
                    : which == 2 ? smaller.inputs
                    : which == 3 ? smaller.outputs
                                 : smaller.axes[static_cast<size_t>(which - 4)].size;
    // Channels and images are as many as the class says, as long as planes can give way.
    const bool keep = options_.mode == Mode::kNetwork && which < 4 && tries < 100;
    if (size == 1 || keep) continue;
    size /= 2;
    if (products_of(smaller) > 0) s = smaller;
  }
  if (options_.mode == Mode::kNetwork && fits(s) && !s.without_batch) {
    const double room = std::min(most_products / std::max(products_of(s), 1.0),
                                 options_.most_elements / std::max(elements_of(s), 1.0));
    s.batch = draw_.log_number(1, std::max<int64_t>(1, static_cast<int64_t>(std::min(room, 256.0))));
  }
  return fits(s);
}

ProblemSketch ProblemGenerator::first_legal(ProblemKind kind, std::span<const ShapeClass> classes) {
  for (int tries = 0; tries < 1000; ++tries) {
    const ShapeClass& drawn = draw_.weighted(classes);
    ProblemSketch sketch;
    sketch.kind = kind;
    sketch.shape_class = drawn.name;
    drawn.draw(draw_, sketch);
    if (!fit(sketch, options_.most_products * drawn.room)) continue;
    if (options_.forward > 0) sketch.forward = draw_.chance(options_.forward);
    if (sketch.forward) draw_forward(draw_, options_.mode, sketch);
    if (options_.all_dtypes) draw_types(draw_, options_.mode, sketch);
    if (!options_.all_dtypes) sketch.types = {};
    if (options_.any_strides && draw_.chance(drawn.layouts)) draw_layouts(draw_, options_.mode, sketch);
    if (!options_.any_strides) sketch.layouts = {};
    if (to_request(sketch)) return sketch;
  }
  throw std::logic_error("no legal problem in 1000 draws: the bounds leave no room");
}

ProblemSketch ProblemGenerator::conv() {
  return first_legal(ProblemKind::kConv, options_.mode == Mode::kTruth ? truth_shapes() : network_shapes());
}
ProblemSketch ProblemGenerator::conv_tbc() { return first_legal(ProblemKind::kConvTbc, kTbc); }
ProblemSketch ProblemGenerator::avgpool() {
  return first_legal(ProblemKind::kAvgPool, options_.mode == Mode::kTruth ? truth_pools() : network_pools());
}
ProblemSketch ProblemGenerator::any() {
  const int64_t kind = draw_.number(1, 100);
  if (kind <= 8) return avgpool();
  if (options_.mode == Mode::kTruth && kind <= 20) return kind <= 14 ? avgpool() : conv_tbc();
  return conv();
}

}  // namespace retrograd::test
