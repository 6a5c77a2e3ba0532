// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c]
//
// A block makes kM places by kN channels. Sums run over (tap, channel) in steps of 128 bytes: each 16-byte
// chunk of a row has one tap, so eight taps of a stem with three channels share a step. Several steps are in
// flight (cp.async), and the fragments of the next 32 bytes while those of these are multiplied; chunks
// beyond the edge arrive as zeros. Operations a byte of shared memory: 2·kM·kN/(kM + kN) of a term.
//
// Zero times a weight that is not finite is NaN where the mathematics skips the product, and FP32 made of
// three products has no Inf: a result that is not finite is taken from the formula instead.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/dense/f32_gather.h"
#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/gather_product_plan.h"
#include "kernels/cuda/dense/gather_results.cuh"
#include "kernels/cuda/dense/gather_tiles.cuh"

namespace retrograd::kernels::cuda {
namespace {

using gather::column_place;
using gather::ColumnPlace;
using gather::Cut;
using gather::Fragments;
using gather::is_suspect;
using gather::Loader;
using gather::Product;
using gather::Residue;
using gather::stage_sums;

// A tile of places by columns, in shared memory: where its rows begin in the source and in the result.
template <class C>
struct Tile {
  int4 rows[C::kM];
  int64_t row_offsets[C::kM], column_offsets[C::kN];
  int3 beyond[C::kN];
  float bias[C::kN];

  __device__ void describe(const Product& p, const Residue& r, uint32_t m0, int n0, int group) {
    for (int i = static_cast<int>(threadIdx.x); i < C::kM; i += C::kThreads) {
      const uint32_t m = m0 + i;
      const Place place = place_of(r, min(m, r.places - 1));
      int at[3];
      int64_t offset = place.n * p.result.strides[0];
#pragma unroll
      for (int a = 0; a < 3; ++a) {
        at[a] = place.at[a] * p.step[a] + r.first[a];
        offset += (int64_t{place.at[a]} * p.result_step[a] + r.result_first[a]) * p.result.strides[2 + a];
      }
      if (m >= r.places) at[2] = -(1 << 30);  // beyond every edge
      rows[i] = int4{place.n * p.source[0], at[0], at[1], at[2]};
      row_offsets[i] = offset;
    }
    const int64_t channel0 = int64_t{group} * (p.forward ? p.conv.y_channels : p.conv.x_channels);
    for (int i = static_cast<int>(threadIdx.x); i < C::kN; i += C::kThreads) {
      const ColumnPlace c = column_place(p, min(n0 + i, p.columns - 1));
      column_offsets[i] = (channel0 + c.channel) * p.result.strides[1] + c.beyond[0] * p.result.strides[2] +
                          c.beyond[1] * p.result.strides[3] + c.beyond[2] * p.result.strides[4];
      beyond[i] = {c.beyond[0], c.beyond[1], c.beyond[2]};
      bias[i] = bias_of(p.conv, channel0 + c.channel);
    }
  }
};

// Which tile a block makes. Blocks that read the same places are neighbours.
template <class C>
struct Corner {
  int residue, part, n0, group;
  uint32_t m0;
  __device__ Corner(const Product& p, int parts) {
    const uint32_t across = static_cast<uint32_t>((p.columns + C::kN - 1) / C::kN);
    residue = static_cast<int>(blockIdx.z) / parts;
    part = static_cast<int>(blockIdx.z) % parts;
    m0 = blockIdx.x / across * C::kM;
    n0 = static_cast<int>(blockIdx.x % across) * C::kN;
    group = static_cast<int>(blockIdx.y);
  }
};

template <class C>
using TileSums = float[C::kWarpM / 16][C::kWarpN / 8][4];
template <class C>
struct WarpCorner {
  int row, column;
  __device__ WarpCorner() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    row = warp / (C::kN / C::kWarpN) * C::kWarpM;
    column = warp % (C::kN / C::kWarpN) * C::kWarpN;
  }
};

template <class C>
__device__ void finish(const Product& p, const Residue& r, const Corner<C>& corner, const Tile<C>& tile,
                       const TileSums<C>& sums, unsigned char* shared) {
  const bool suspect = p.repair && __syncthreads_or(is_suspect(sums));
  auto* staged = reinterpret_cast<float*>(shared);
  const WarpCorner<C> warp;
  stage_sums<C>(p.by_columns, sums, p.conv.bias.data == nullptr ? nullptr : tile.bias, warp.row, warp.column,
                staged);
  __syncthreads();
  const gather::TileResults<C> results{p,           r,      tile.rows, tile.row_offsets, tile.column_offsets,
                                       tile.beyond, staged, corner.m0, corner.n0,        corner.group};
  results.store();
  if (suspect) {
    __syncthreads();
    results.repair();
  }
}

// The sums of this thread in a block's room, so that neighbouring threads have neighbouring words.
template <class C>
__device__ float* partial_sums(const Product& p, uint32_t z) {
  constexpr int64_t kFloats = int64_t{C::kM} * C::kN;
  return p.partial + ((int64_t{z} * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * kFloats + threadIdx.x;
}

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
#pragma unroll
  for (int i = 0; i < C::kStages - 1; ++i) {
    if (i < steps) loader.load(i * C::kStageBytes);
    close_copies();
  }
  const WarpCorner<C> warp;
  WarpSums<Math, C::kWarpM, C::kWarpN> sums;
  Fragments<C> fragments[2];
  wait_for_copies<C::kStages - 2>();
  __syncthreads();
  fragments[0].load(base, warp.row, warp.column, 0);
  uint32_t reading = 0, writing = (C::kStages - 1) * C::kStageBytes;
  const auto next = [](uint32_t stage) {
    return stage == (C::kStages - 1) * C::kStageBytes ? 0u : stage + C::kStageBytes;
  };
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k == 3) {
        wait_for_copies<C::kStages - 2>();
        __syncthreads();
        reading = next(reading);
      }
      fragments[(k + 1) % 2].load(base + reading, warp.row, warp.column, (k + 1) % 4);
      if (k == 0) {
        if (step + C::kStages - 1 < steps) loader.load(writing);
        close_copies();
        writing = next(writing);
      }
      sums.add(fragments[k % 2].a, fragments[k % 2].b);
    }
    sums.settle();
  }
  wait_for_copies<0>();
  if (p.parts > 1) {
    float* to = partial_sums<C>(p, blockIdx.z);
#pragma unroll
    for (int i = 0; i < C::kWarpM / 16; ++i)
#pragma unroll
      for (int j = 0; j < C::kWarpN / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e, to += C::kThreads) *to = sums.sums[i][j][e];
    return;
  }
  __syncthreads();
  finish<C>(p, r, corner, tile, sums.sums, shared);
}

// Adds up the parts of a tile, first to last.
template <class C>
__global__ void __launch_bounds__(C::kThreads) parts_kernel(const __grid_constant__ Product p) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Tile<C> tile;
  const Corner<C> corner(p, 1);
  const Residue& r = p.residues[corner.residue];
  if (corner.m0 >= r.places) return;
  tile.describe(p, r, corner.m0, corner.n0, corner.group);
  // Four parts are under way at once.
  constexpr int kSums = C::kWarpM / 16 * (C::kWarpN / 8) * 4, kTogether = 4;
  TileSums<C> sums = {};
  float* const all = &sums[0][0][0];
  for (int part = 0; part < p.parts; part += kTogether)
#pragma unroll
    for (int i = 0; i < kSums; i += 8) {
      float values[kTogether][8];
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e)
          values[j][e] = part + j < p.parts
                             ? partial_sums<C>(p, blockIdx.z * p.parts + part + j)[(i + e) * C::kThreads]
                             : 0.0f;
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e) all[i + e] += values[j][e];
    }
  __syncthreads();
  finish<C>(p, r, corner, tile, sums, shared);
}

template <class Math, class C>
void launch(const Product& p, const GatherProduct& product, uint32_t places, unsigned residues,
            Stream stream) {
  cudaFuncSetAttribute(product_kernel<Math, C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kBytes);
  dim3 grid(static_cast<unsigned>((p.columns + C::kN - 1) / C::kN) * ((places + C::kM - 1) / C::kM),
            static_cast<unsigned>(product.conv.groups), residues * static_cast<unsigned>(p.parts));
  product_kernel<Math, C><<<grid, C::kThreads, C::kBytes, stream>>>(
      p, static_cast<const char*>(product.source_rows), static_cast<const char*>(product.weight_rows));
  if (p.parts == 1) return;
  cudaFuncSetAttribute(parts_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kFinishBytes);
  grid.z = residues;
  parts_kernel<C><<<grid, C::kThreads, C::kFinishBytes, stream>>>(p);
}

gather::Fold fold_of(const GatherProduct& product) {
  gather::Fold fold{};
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

Residue residue_of(const ProductAxes& axes, int64_t batch, int chunks) {
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
Product prepare(const GatherProduct& product, std::span<const ProductAxes> residues, int64_t chunk) {
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

template <class Math>
void launch_in(const GatherProduct& product, std::span<const ProductAxes> residues, Stream stream) {
  Product p = prepare(product, residues, 16 / sizeof(typename Math::Element));
  const GatherTiles tiles = gather_cut(product, residues).tiles;
  for (size_t first = 0; first < residues.size();) {
    unsigned count = 0;
    uint32_t places = 0;
    for (; first < residues.size() && count < kMostResidues; ++first) {
      const Residue r = residue_of(residues[first], product.conv.batch, p.chunks);
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
  switch (product.math) {
    case ProductMath::kF16:
      return launch_in<InF16>(product, residues, stream);
    case ProductMath::kBF16:
      return launch_in<InBF16>(product, residues, stream);
    case ProductMath::kTF32:
      return launch_in<InTF32>(product, residues, stream);
    case ProductMath::kF32:
      return launch_in<InF32>(product, residues, stream);
  }
}

void clear(void* data, size_t bytes, Stream stream) { cudaMemsetAsync(data, 0, bytes, stream); }

}  // namespace retrograd::kernels::cuda
