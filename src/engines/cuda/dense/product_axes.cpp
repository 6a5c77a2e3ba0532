// SPDX-License-Identifier: Apache-2.0
// Residues and the taps that match them.
#include "engines/cuda/dense/product_axes.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::ProductAxis;

ProductAxis forward_axis(const Window& w) {
  return {.results = w.y,
          .source = w.x,
          .step = w.stride,
          .first = -w.pad_lo,
          .taps = w.kernel,
          .tap_step = w.dilation,
          .kernel = w.kernel};
}

// Places residue + i·stride of x.
ProductAxis residue_axis(const Window& w, int64_t residue) {
  const problem::ResidueTaps taps = residue_taps(w, residue);
  return {.results = ceil_div(w.x - residue, w.stride),
          .result_step = w.stride,
          .result_first = residue,
          .source = w.y,
          .first = taps.offset,
          .taps = taps.count,
          .tap_step = -taps.step,
          .tap_first = taps.first,
          .tap_stride = taps.spacing,
          .kernel = w.kernel};
}

bool leaves(int64_t lowest, int64_t highest, int64_t size) { return lowest < 0 || highest >= size; }

}  // namespace

std::vector<ProductAxes> product_axes(const ConvPass& pass) {
  const auto& [d, h, w] = pass.axes;
  if (pass.kind == ConvPassKind::kForward) return {{forward_axis(d), forward_axis(h), forward_axis(w)}};
  std::vector<ProductAxes> all;
  for (int64_t rd = 0; rd < std::min(d.stride, d.x); ++rd)
    for (int64_t rh = 0; rh < std::min(h.stride, h.x); ++rh)
      for (int64_t rw = 0; rw < std::min(w.stride, w.x); ++rw)
        all.push_back({residue_axis(d, rd), residue_axis(h, rh), residue_axis(w, rw)});
  return all;
}

bool has_no_tap(const ProductAxes& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const ProductAxis& axis) { return axis.taps == 0; });
}

// Taps t and t' of two outputs meet where (t − t')·dilation is a multiple of the stride; one output meets
// none.
std::optional<ProductAxes> folded_axes(const ConvPass& pass) {
  if (pass.kind != ConvPassKind::kGradInput) return std::nullopt;
  ProductAxes axes;
  bool apart = false;
  for (size_t a = 0; a < axes.size(); ++a) {
    const Window& w = pass.axes[a];
    if (w.y > 1 && w.kernel > w.stride / std::gcd(w.stride, w.dilation)) return std::nullopt;
    apart = apart || w.stride > 1 || (w.y == 1 && w.kernel > 1);
    axes[a] = {.results = w.y, .result_step = w.stride, .result_first = -w.pad_lo, .source = w.y};
  }
  return apart ? std::optional(axes) : std::nullopt;
}

bool folded_covers_x(const ConvPass& pass) {
  return std::all_of(pass.axes.begin(), pass.axes.end(), [](const Window& w) {
    const bool side_by_side = w.y == 1 ? w.kernel == w.x : w.x == w.y * w.stride && w.kernel == w.stride;
    return w.pad_lo == 0 && side_by_side && (w.dilation == 1 || w.kernel == 1);
  });
}

bool leaves_source(const ProductAxes& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const ProductAxis& a) {
    const int64_t reach = (a.taps - 1) * a.tap_step;
    return a.taps > 0 && leaves(a.first + std::min<int64_t>(reach, 0),
                                a.first + (a.results - 1) * a.step + std::max<int64_t>(reach, 0), a.source);
  });
}

bool leaves_source(const ConvPass& pass) {
  return std::any_of(pass.axes.begin(), pass.axes.end(), [](const Window& w) {
    return leaves(-w.pad_lo, (w.y - 1) * w.stride - w.pad_lo + (w.kernel - 1) * w.dilation, w.x);
  });
}

}  // namespace retrograd::engines::cuda
