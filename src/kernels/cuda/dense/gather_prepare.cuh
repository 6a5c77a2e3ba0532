// SPDX-License-Identifier: Apache-2.0
// From what a gather product is asked to what its kernels are told.
#pragma once

#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/gather_tiles.cuh"

namespace retrograd::kernels::cuda::gather {

inline Fold fold_of(const GatherProduct& product) {
  Fold fold{};
  fold.on = product.columns != Columns::kChannels;
  if (!fold.on) return fold;
  const Axis(&axes)[3] = product.conv.axes;
  fold.taps_fast = product.columns == Columns::kFoldedTapsFast;
  fold.checked = product.padded;
  fold.inner =
      FastDiv(fold.taps_fast ? axes[0].kernel * axes[1].kernel * axes[2].kernel : product.conv.x_channels);
  fold.kw = FastDiv(axes[2].kernel);
  fold.kh = FastDiv(axes[1].kernel);
  for (int a = 0; a < 3; ++a) {
    fold.dilation[a] = static_cast<int>(axes[a].dilation);
    fold.x[a] = static_cast<int>(axes[a].x);
  }
  return fold;
}

inline Residue residue_of(const ProductAxes& axes, int64_t batch, int chunks) {
  Residue r;
  int64_t places = batch, taps = 1;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = axes[a];
    r.results[a] = FastDiv(axis.results > 0 ? axis.results : 1);
    r.taps[a] = FastDiv(axis.taps > 0 ? axis.taps : 1);
    r.first[a] = static_cast<int>(axis.first);
    r.tap_first[a] = static_cast<int>(axis.tap_first);
    r.result_first[a] = static_cast<int>(axis.result_first);
    places *= axis.results;
    taps *= axis.taps;
  }
  r.places = static_cast<uint32_t>(places);
  r.steps = static_cast<int>((taps * chunks + 7) / 8);
  return r;
}

// All but the residues.
inline Product prepare(const GatherProduct& product, std::span<const ProductAxes> residues, int64_t chunk) {
  const Conv& conv = product.conv;
  const int64_t channels = row_channels(product);
  Product p;
  p.conv = conv;
  p.forward = product.forward;
  p.fold = fold_of(product);
  p.repair = (product.padded && !p.fold.on) || product.math == ProductMath::kF32;
  p.columns = static_cast<int>(product.forward ? conv.y_channels : conv.x_channels);
  if (p.fold.on)
    for (const Axis& axis : conv.axes) p.columns *= static_cast<int>(axis.kernel);
  p.chunks = static_cast<int>((channels + chunk - 1) / chunk);
  p.by_chunks = FastDiv(p.chunks > 0 ? p.chunks : 1);
  p.parts = product.parts;
  p.partial = product.partial;
  p.filled = static_cast<uint32_t>(p.chunks) * 16;
  p.pitch = p.filled * static_cast<uint32_t>(conv.groups);
  int64_t kernel = 1;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = residues[0][a];
    p.step[a] = static_cast<int>(axis.step);
    p.source[a] = static_cast<int>(axis.source);
    p.result_step[a] = static_cast<int>(axis.result_step);
    p.tap_stride[a] = static_cast<int>(axis.tap_stride);
    p.kernel[a] = static_cast<int>(axis.kernel);
    p.tap_step[a] = 0;
    for (const ProductAxes& axes : residues)  // of one without taps it is 0
      if (axes[a].taps > 0) p.tap_step[a] = static_cast<int>(axes[a].tap_step);
    kernel *= axis.kernel;
  }
  p.weight_group = kernel * p.columns * p.filled;
  p.result = product.forward ? conv.y : conv.x;
  const GatherRun run = gather_run(product, residues);
  p.by_columns = run.by_columns;
  p.run = run.length;
  return p;
}

}  // namespace retrograd::kernels::cuda::gather
