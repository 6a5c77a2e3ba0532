// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c], operands in place
//
// A block makes 64 pixels by kN columns. A step is 128 bytes of the channels of one tap. Rows of channels
// and weights with columns side by side come in asynchronous chunks; planes and other weights come element by
// element, neighbouring lanes with neighbouring pixels or columns: of FP32 asynchronously, of 16 bits through
// registers while the step before is multiplied. What lies beyond an edge is not read and becomes zero; what
// that makes of weights that are not finite is mended as in gather_product.cu.
#include <algorithm>

#include "base/checked.h"
#include "kernels/cuda/dense/gather_blocks.cuh"
#include "kernels/cuda/dense/gather_in_place.h"
#include "kernels/cuda/dense/gather_prepare.cuh"
#include "kernels/cuda/dense/in_place_tiles.cuh"

namespace retrograd::kernels::cuda {
namespace {

using gather::Corner;
using gather::Cut;
using gather::Product;
using gather::Residue;
using gather::Tile;
using in_place::Places;

template <class Math, class C, bool kRows>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    in_place_kernel(const __grid_constant__ Product p, const __grid_constant__ Places places,
                    const typename Math::Element* source, const typename Math::Element* weights) {
  using E = typename Math::Element;
  using S = in_place::Stage<E, C, kRows>;
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
  in_place::Walk walk(p, r, first);
  int chunk = walk.chunk;  // of the step that is multiplied
  std::conditional_t<kRows, in_place::RowsOfPlaces<E, C>, in_place::LinesOfPlaces<E, C>> a(
      p, r, places, source + corner.group * places.source_group, corner.m0, tile.rows);
  in_place::LinesOfWeights<E, C, kRows> b(weights + corner.group * places.weight_group, corner.n0);
  a.find(p, places, walk.tap);
  b.find(p, r, places, walk.tap);
  const auto begin = [&](uint32_t stage) {
    const int term = walk.chunk * S::kTerms, live = places.channels - term;
    a.begin(stage, term, live, places.source[1], source);
    b.begin(stage + S::kBytesA, term, live, places.weight_term, weights);
    if (!walk.next(p, r)) return;
    a.find(p, places, walk.tap);
    b.find(p, r, places, walk.tap);
  };
  const auto end = [&](uint32_t stage) {
    a.end(stage);
    b.end(stage + S::kBytesA);
  };
#pragma unroll
  for (int i = 0; i < S::kStages - 1; ++i) {
    if (i < steps) {
      begin(base + i * S::kBytes);
      end(base + i * S::kBytes);
    }
    close_copies();
  }
  const WarpCorner<C> warp;
  WarpSums<Math, C::kWarpM, C::kWarpN> sums;
  in_place::Fragments<E, C, kRows> fragments[2];
  uint32_t reading = base, writing = base + (S::kStages - 1) * S::kBytes;
  const auto next = [&](uint32_t stage) {
    return stage == base + (S::kStages - 1) * S::kBytes ? base : stage + S::kBytes;
  };
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<S::kStages - 2>();
    __syncthreads();
    const bool more = step + S::kStages - 1 < steps;
    if (more) begin(writing);
    close_copies();
    const int live = places.channels - chunk * S::kTerms;
    fragments[0].load(reading, warp.row, warp.column, 0);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k < 3) fragments[(k + 1) % 2].load(reading, warp.row, warp.column, k + 1);
      if (k * (S::kTerms / 4) < live) sums.add(fragments[k % 2].a, fragments[k % 2].b);
    }
    sums.settle();
    if (more) end(writing);
    reading = next(reading);
    writing = next(writing);
    chunk = chunk + 1 == p.chunks ? 0 : chunk + 1;
  }
  wait_for_copies<0>();
  if (p.parts > 1) {
    gather::keep_part<C>(p, sums.sums);
    return;
  }
  __syncthreads();
  gather::finish<C, E>(p, r, corner, tile, sums.sums, shared);
}

template <class Math, class C, bool kRows>
void launch(const Product& p, const Places& places, const GatherProduct& product, uint32_t most,
            unsigned residues, Stream stream) {
  using E = typename Math::Element;
  using S = in_place::Stage<E, C, kRows>;
  constexpr int kBytes = std::max(S::kStages * S::kBytes, C::kFinishBytes);
  const Extent grid(ceil_div(p.columns, C::kN) * ceil_div(most, C::kM), product.conv.groups,
                    residues * p.parts);
  const Tensor& source = product.forward ? product.conv.x : product.conv.y;
  start(in_place_kernel<Math, C, kRows>, grid, C::kThreads, kBytes, stream, p, places, source.data,
        product.conv.w.data);
  if (p.parts > 1) gather::add_parts<C>(p, grid, residues, stream);
}

Places places_of(const GatherProduct& product) {
  const Conv& conv = product.conv;
  const Tensor& source = product.forward ? conv.x : conv.y;
  const InPlaceWeights weights = in_place_weights(conv, product.forward, product.columns);
  Places places;
  std::copy(std::begin(source.strides), std::end(source.strides), places.source);
  std::copy(std::begin(weights.tap), std::end(weights.tap), places.weight_tap);
  places.channels = static_cast<int>(product.forward ? conv.x_channels : conv.y_channels);
  places.source_group = places.channels * source.strides[1];
  places.weight_group = weights.group;
  places.weight_term = weights.term;
  places.weight_column = weights.column;
  return places;
}

template <class Math>
void launch_in(const GatherProduct& product, InPlaceForm form, const InPlaceCut& cut,
               std::span<const ProductAxes> residues, Stream stream) {
  constexpr int64_t kElement = sizeof(typename Math::Element), kTerms = 128 / kElement;
  const Places places = places_of(product);
  Product p = gather::prepare(product, residues, kTerms);
  p.parts = cut.parts;
  p.pitch = static_cast<uint32_t>(places.channels * product.conv.groups * kElement);
  for (size_t first = 0; first < residues.size();) {
    unsigned count = 0;
    uint32_t most = 0;
    for (; first < residues.size() && count < kMostResidues; ++first) {
      Residue r = gather::residue_of(residues[first], product.conv.batch, p.chunks);
      if (r.places == 0) continue;
      // A step has one tap.
      r.steps = p.chunks;
      for (const ProductAxis& axis : residues[first]) r.steps *= static_cast<int>(axis.taps);
      p.residues[count++] = r;
      most = std::max(most, r.places);
    }
    if (count == 0 || p.columns == 0) continue;
    using Wide = Cut<64, 64, 32, 32, 2, 3>;
    if (form == InPlaceForm::kRows)
      launch<Math, Wide, true>(p, places, product, most, count, stream);
    else if (cut.n == 64)
      launch<Math, Wide, false>(p, places, product, most, count, stream);
    else
      launch<Math, Cut<64, 32, 32, 16, 2, 4>, false>(p, places, product, most, count, stream);
  }
}

}  // namespace

void gather_in_place(const GatherProduct& product, InPlaceForm form, const InPlaceCut& cut,
                     std::span<const ProductAxes> residues, Stream stream) {
  if (residues.empty()) return;
  with_math<InNearTF32>(product.math,
                        [&](auto math) { launch_in<decltype(math)>(product, form, cut, residues, stream); });
}

}  // namespace retrograd::kernels::cuda
