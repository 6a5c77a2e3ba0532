// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c]
//
// A block makes kM pixels by kN channels. Sums run over (tap, channel) in steps of 128 bytes: each 16-byte
// chunk of a row has one tap, so eight taps of a stem with three channels share a step. Several steps are in
// flight (cp.async), and the fragments of the next 32 bytes while those of these are multiplied; chunks
// beyond the edge arrive as zeros. Operations a byte of shared memory: 2·kM·kN/(kM + kN) of a term.
//
// Zero times a weight that is not finite is NaN where the mathematics skips the product, and FP32 made of
// three products has no Inf: a result that is not finite is taken from the formula instead.
#include <algorithm>
#include <type_traits>

#include "base/checked.h"
#include "kernels/cuda/dense/gather_blocks.cuh"
#include "kernels/cuda/dense/gather_prepare.cuh"
#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/gather_tiles.cuh"

namespace retrograd::kernels::cuda {
namespace {

using gather::Corner;
using gather::Cut;
using gather::finish;
using gather::Fragments;
using gather::Loader;
using gather::Product;
using gather::Residue;
using gather::Tile;

template <class Math, class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    product_kernel(const __grid_constant__ Product p, const char* source, const char* weights) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Tile<C> tile;
  const Corner<C> corner(p, p.parts);
  const Residue& r = p.residues[corner.residue];
  const uint32_t base = shared_address(shared);
  if (corner.m0 >= r.places) return;  // of a residue with fewer places than others
  tile.describe(p, r, corner.m0, corner.n0, corner.group);
  __syncthreads();

  const int first = static_cast<int>(int64_t{r.steps} * corner.part / p.parts);
  const int steps = static_cast<int>(int64_t{r.steps} * (corner.part + 1) / p.parts) - first;
  Loader<C> loader(p, r, tile.rows, source + int64_t{corner.group} * p.filled,
                   weights + corner.group * p.weight_group, corner.n0, first, base);
  uint32_t writing = 0;
  const auto load = [&](int step) {
    if (step < steps) loader.load(writing);
    writing = writing == (C::kStages - 1) * C::kStageBytes ? 0u : writing + C::kStageBytes;
  };
  WarpSums<Math, C::kWarpM, C::kWarpN> sums;
  multiply_steps<C, C::kStageBytes, Fragments<C>>(steps, base, WarpCorner<C>(), sums, load, [](int) {});
  if (p.parts > 1) {
    gather::keep_part<C>(p, sums.sums);
    return;
  }
  __syncthreads();
  finish<C>(p, r, corner, tile, sums.sums, shared);
}

template <class Math, class C>
void launch(const Product& p, const GatherProduct& product, uint32_t places, unsigned residues,
            Stream stream) {
  const Extent grid(ceil_div(p.columns, C::kN) * ceil_div(places, C::kM), product.conv.groups,
                    residues * p.parts);
  start(product_kernel<Math, C>, grid, C::kThreads, C::kBytes, stream, p, product.source_rows,
        product.weight_rows);
  if (p.parts > 1) gather::add_parts<C>(p, grid, residues, stream);
}

template <class Math>
void launch_in(const GatherProduct& product, std::span<const ProductAxes> residues, Stream stream) {
  Product p = gather::prepare(product, residues, 16 / sizeof(typename Math::Element));
  const GatherTiles tiles = gather_cut(product, residues).tiles;
  for (size_t first = 0; first < residues.size();) {
    unsigned count = 0;
    uint32_t places = 0;
    for (; first < residues.size() && count < kMostResidues; ++first) {
      const Residue r = gather::residue_of(residues[first], product.conv.batch, p.chunks);
      if (r.places == 0) continue;
      p.residues[count++] = r;
      places = std::max(places, r.places);
    }
    if (count == 0 || p.columns == 0) continue;
    if constexpr (std::is_same_v<Math, InF32> || std::is_same_v<Math, InTF32>)
      if (product.warpgroups && count == 1 && f32_gather(p, product, stream)) continue;
    if (tiles.n == 16) {
      launch<Math, Cut<128, 16, 32, 16, 3, 3>>(p, product, places, count, stream);
    } else if (tiles.n == 32) {
      launch<Math, Cut<128, 32, 64, 32, 2, 4>>(p, product, places, count, stream);
    } else if (tiles.n == 128) {
      if constexpr (!std::is_same_v<Math, InF32>)
        launch<Math, Cut<128, 128, 64, 64, 3, 2>>(p, product, places, count, stream);
    } else if (tiles.m == 128) {
      launch<Math, Cut<128, 64, 32, 32, 3, 2>>(p, product, places, count, stream);
    } else {
      launch<Math, Cut<64, 64, 32, 32, 4, 3>>(p, product, places, count, stream);
    }
  }
}

}  // namespace

void gather_product(const GatherProduct& product, std::span<const ProductAxes> residues, Stream stream) {
  if (residues.empty()) return;
  with_math<InTF32>(product.math, [&](auto math) { launch_in<decltype(math)>(product, residues, stream); });
}

void clear(void* data, size_t bytes, Stream stream) { cudaMemsetAsync(data, 0, bytes, stream); }

}  // namespace retrograd::kernels::cuda
