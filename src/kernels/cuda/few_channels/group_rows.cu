// SPDX-License-Identifier: Apache-2.0
// result[m, g, n] = Σ_{tap, c} source[place(m, tap), g, c] · weight[g, tap, n, c] of groups of 8 to 32
// channels
//
// A block makes tiles of 64 places by the channels of several groups, one tile after the other, with its
// weights in shared memory as fragments. A step is one tap: the block's channels of 64 places, 16 bytes at a
// time, while those of the step before are multiplied. A product spans eight channels of one group, so groups
// never meet. Results go through shared memory, so that a place's channels are stored side by side.
//
// Zeros beyond the edge are multiplied: where that may have made a NaN, the result is taken from the formula.
#include <algorithm>

#include "kernels/cuda/dense/gather_prepare.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/few_channels/group_rows.cuh"
#include "kernels/cuda/few_channels/group_rows.h"
#include "kernels/cuda/repair.cuh"

namespace retrograd::kernels::cuda {
namespace {

using gather::Product;
using gather::Residue;
using namespace group_rows_tiles;

// What this warp has staged, once more where it is NaN and a tap lies beyond the edge.
template <class E>
__device__ __noinline__ void repair_rows(const Product& p, const Residue& r, const Block& block,
                                         const E* staged, uint32_t m0) {
  const Result result = p.forward ? Result::kForward : Result::kGradInput;
  const int channels = block.groups * block.columns * 8, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int i = lane; i < 16 * channels; i += 32) {
    const int row = i / channels, channel = i % channels;
    bool suspect = m0 + row < r.places && isnan(to_float(staged[row * block.out_pitch / 2 + channel]));
    if (!__any_sync(~0u, suspect)) continue;
    const Place place = place_of(r, min(m0 + row, r.places - 1));
    int64_t at[3], offset = place.n * p.result.strides[0];
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      at[a] = int64_t{place.at[a]} * p.result_step[a] + r.result_first[a];
      offset += at[a] * p.result.strides[2 + a];
    }
    const int64_t c = int64_t{block.first_group} * block.columns * 8 + channel;
    const Index5 index{place.n, c, at[0], at[1], at[2]};
    repair_in_warp(p.conv, result, suspect && reaches_edge(p.conv, result, index), index,
                   [&](float sum) { static_cast<E*>(p.result.data)[offset + c] = from_float<E>(sum); });
  }
}

// Sums of this warp's 16 places to the result.
template <class E>
__device__ void finish(const Product& p, const Residue& r, const Block& block, const float (&sums)[kMost][4],
                       unsigned char* staged, uint32_t m0) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t channel0 = int64_t{block.first_group} * block.columns * 8;
  bool nan = false;
#pragma unroll
  for (int t = 0; t < kMost; ++t) {
    if (t >= block.tiles()) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int channel = t * 8 + lane % 4 * 2;
      float a = sums[t][2 * half], b = sums[t][2 * half + 1];
      if (p.conv.bias.data != nullptr)
        a += bias_of(p.conv, channel0 + channel), b += bias_of(p.conv, channel0 + channel + 1);
      nan = nan || isnan(a) || isnan(b);
      E* const to = reinterpret_cast<E*>(staged + (lane / 4 + half * 8) * block.out_pitch) + channel;
      to[0] = from_float<E>(a), to[1] = from_float<E>(b);
    }
  }
  __syncwarp();
  // Two lanes a place.
  const uint32_t m = m0 + lane / 2;
  if (m < r.places) {
    const Place place = place_of(r, m);
    int64_t offset = place.n * p.result.strides[0] + channel0;
#pragma unroll
    for (int a = 0; a < 3; ++a)
      offset += (int64_t{place.at[a]} * p.result_step[a] + r.result_first[a]) * p.result.strides[2 + a];
    const unsigned char* const from = staged + lane / 2 * block.out_pitch;
    for (int chunk = lane % 2; chunk < block.tiles(); chunk += 2)
      *reinterpret_cast<uint4*>(static_cast<E*>(p.result.data) + offset + chunk * 8) =
          *reinterpret_cast<const uint4*>(from + chunk * 16);
  }
  __syncwarp();  // other lanes store what is mended
  if (!p.repair || !__any_sync(~0u, nan)) return;
  repair_rows(p, r, block, reinterpret_cast<const E*>(staged), m0);
  __syncwarp();
}

template <class Math>
__global__ void __launch_bounds__(kThreads, 3)
    group_rows_kernel(const __grid_constant__ Product p, const GroupRows plan, const InPlaceWeights strides,
                      const int run, const typename Math::Element* source,
                      const typename Math::Element* weights) {
  using E = typename Math::Element;
  extern __shared__ __align__(128) unsigned char shared[];
  const Residue& r = p.residues[blockIdx.z];
  const uint32_t tile0 = blockIdx.x * static_cast<uint32_t>(run), all = (r.places + kPlaces - 1) / kPlaces;
  if (tile0 >= all) return;  // of a residue with fewer places than others
  const Block block(plan, static_cast<int>(blockIdx.y), static_cast<int>(p.conv.groups));
  unsigned char* const fragments = shared + 2 * kPlaces * block.in_pitch;
  unsigned char* const staged = fragments + plan.weight_bytes;
  // A residue without taps has one that reads nothing.
  const int taps = max(r.steps, 1), tiles = static_cast<int>(min(all - tile0, static_cast<uint32_t>(run)));
  load_weights(p, r, block, strides, weights, reinterpret_cast<uint32_t*>(fragments));
  const uint32_t base = shared_address(shared), of_weights = shared_address(fragments);
  Loader<E> loader(p, r, block, source, tile0 * kPlaces);
  loader.load(base);
  close_copies();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float sums[kMost][4] = {};
  int tap = 0;
  for (int step = 0; step < tiles * taps; ++step) {
    if (step + 1 < tiles * taps) loader.load(base + (step + 1) % 2 * kPlaces * block.in_pitch);
    close_copies();
    wait_for_copies<1>();
    __syncthreads();
    multiply<Math>(block, base + (step % 2 * kPlaces + warp * 16) * block.in_pitch,
                   of_weights + tap * block.tiles() * block.terms * 128, sums);
    if (++tap == taps) {
      tap = 0;
      finish<E>(p, r, block, sums, staged + warp * 16 * block.out_pitch,
                (tile0 + step / taps) * kPlaces + warp * 16);
#pragma unroll
      for (int t = 0; t < kMost; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[t][e] = 0;
    }
    __syncthreads();  // before the stage is written again
  }
}

template <class Math>
void launch_in(const GatherProduct& product, const GroupRows& plan, std::span<const ProductAxes> residues,
               Stream stream) {
  using E = typename Math::Element;
  constexpr int kFew = 4 * 132;  // blocks: with more of them a block takes several tiles
  const Conv& conv = product.conv;
  Product p = gather::prepare(product, residues, 8);
  const InPlaceWeights strides = in_place_weights(conv, product.forward, Columns::kChannels);
  const int bytes =
      kPlaces * (2 * pitch_of(plan.groups * plan.terms) + pitch_of(plan.groups * plan.columns)) +
      plan.weight_bytes;
  cudaFuncSetAttribute(group_rows_kernel<Math>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  for (size_t first = 0; first < residues.size();) {
    unsigned count = 0;
    uint32_t most = 0;
    for (; first < residues.size() && count < kMostResidues; ++first) {
      Residue r = gather::residue_of(residues[first], conv.batch, p.chunks);
      if (r.places == 0) continue;
      r.steps = 1;  // taps
      for (const ProductAxis& axis : residues[first]) r.steps *= static_cast<int>(axis.taps);
      p.residues[count++] = r;
      most = std::max(most, r.places);
    }
    if (count == 0) continue;
    const auto tiles = static_cast<int64_t>((most + kPlaces - 1) / kPlaces);
    const int64_t blocks = tiles * plan.slabs * count;
    const int run = static_cast<int>(std::clamp<int64_t>(blocks / kFew, 1, 16));
    const dim3 grid(static_cast<unsigned>((tiles + run - 1) / run), static_cast<unsigned>(plan.slabs), count);
    group_rows_kernel<Math><<<grid, kThreads, bytes, stream>>>(
        p, plan, strides, run, static_cast<const E*>((product.forward ? conv.x : conv.y).data),
        static_cast<const E*>(conv.w.data));
  }
}

}  // namespace

void group_rows(const GatherProduct& product, const GroupRows& plan, std::span<const ProductAxes> residues,
                Stream stream) {
  if (residues.empty()) return;
  if (product.math == ProductMath::kF16)
    launch_in<InF16>(product, plan, residues, stream);
  else
    launch_in<InBF16>(product, plan, residues, stream);
}

}  // namespace retrograd::kernels::cuda
