// SPDX-License-Identifier: Apache-2.0
// gather_product's sums in FP32 on Hopper: tiles of pixels by channels as in gather_product.cu, 32 terms a
// step, multiplied by warpgroups (f32_sums.cuh). Blocks stay on their multiprocessor and take tile after
// tile: the first operands of the next arrive while the results of the last are written. Results go from
// registers to memory; eight neighbouring pixels, or eight channels, fill a 32-byte sector. Few tiles with
// long sums are shared among the blocks of a cluster: each adds the sums of some columns, in the order of
// ranks, and writes them.
#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/dense/cluster.cuh"
#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/gather_tiles.cuh"
#include "kernels/cuda/dense/tensor_map.h"
#include "kernels/cuda/sm90a/f32_repair.cuh"
#include "kernels/cuda/sm90a/f32_sums.cuh"

namespace retrograd::kernels::cuda {
namespace {

using f32::Barriers;
using f32::Cut;
using f32::Multiplier;
using gather::Product;
using gather::Residue;

struct Maps {
  CUtensorMap places, weights;
  int axes, channels, steps;  // axes: of the map of places, w and h or all three; steps: of a tile
  int shares;                 // blocks of a tile
  int first[3], offset[3];    // of the box of place 0, and from there to the first tap
};

// The steps of this block, and of a tile's columns, in eights, those that it writes.
struct Share {
  int rank, first, count, shares;
  __device__ Share(const Maps& maps)
      : rank(static_cast<int>(blockIdx.x) % maps.shares),
        first(static_cast<int>(int64_t{maps.steps} * rank / maps.shares)),
        count(static_cast<int>(int64_t{maps.steps} * (rank + 1) / maps.shares) - first),
        shares(maps.shares) {}
  template <class C>
  __device__ int first_eight() const {
    return C::kN / 8 * rank / shares;
  }
  template <class C>
  __device__ int last_eight() const {
    return C::kN / 8 * (rank + 1) / shares;
  }
};

// Blocks that read the same places are neighbours.
struct Tile {
  uint32_t m0;
  int n0;
};
template <class C>
struct Tiles {
  uint32_t across, down, count;
  __device__ Tiles(const Product& p)
      : across(static_cast<uint32_t>((p.columns + C::kN - 1) / C::kN)),
        down((p.residues[0].places + C::kM - 1) / C::kM),
        count(across * down) {}
  __device__ Tile operator[](uint32_t i) const {
    return {i / across * C::kM, static_cast<int>(i % across) * C::kN};
  }
};

// What one thread asks for: of the places a box of 32 channels of a tap, of the weights a box of rows.
template <class C>
struct Operands {
  const Product& p;
  const Maps& maps;
  const Tiles<C>& tiles;
  uint32_t tile;
  int channel, tap[3], n0, at[4];  // at: image, then where the box begins

  __device__ Operands(const Product& product, const Maps& m, const Tiles<C>& t, int first_step)
      : p(product), maps(m), tiles(t), tile(blockIdx.x / static_cast<uint32_t>(m.shares)) {
    begin();
    const int of_tap = (maps.channels + f32::kTerms - 1) / f32::kTerms;
    channel = first_step % of_tap * f32::kTerms;
    auto w = static_cast<uint32_t>(first_step / of_tap);
    uint32_t h = p.residues[0].taps[2].split(w);
    tap[0] = static_cast<int>(p.residues[0].taps[1].split(h));
    tap[1] = static_cast<int>(h);
    tap[2] = static_cast<int>(w);
  }
  __device__ void begin() {
    if (tile >= tiles.count) return;
    const Tile here = tiles[tile];
    const Place place = place_of(p.residues[0], here.m0);
    n0 = here.n0;
    at[0] = place.n;
#pragma unroll
    for (int a = 0; a < 3; ++a) at[1 + a] = place.at[a] * p.step[a] + maps.first[a];
    channel = tap[0] = tap[1] = tap[2] = 0;
  }
  __device__ void next() {
    channel += f32::kTerms;
    if (channel < maps.channels) return;
    channel = 0;
    if (++tap[2] < static_cast<int>(p.residues[0].taps[2].divisor)) return;
    tap[2] = 0;
    if (++tap[1] < static_cast<int>(p.residues[0].taps[1].divisor)) return;
    tap[1] = 0;
    if (++tap[0] < static_cast<int>(p.residues[0].taps[0].divisor)) return;
    tile += gridDim.x;
    begin();
  }
  __device__ void ask(uint32_t stage, uint32_t barrier) {
    if (threadIdx.x != 0) return;
    const auto to = [&](int a) { return static_cast<uint16_t>(maps.offset[a] + tap[a] * p.tap_step[a]); };
    if (maps.axes == 2)
      hopper::load_places(stage, &maps.places, barrier, channel, at[3], at[2], at[0], to(2), to(1));
    else
      hopper::load_places(stage, &maps.places, barrier, channel, at[3], at[2], at[1], at[0], to(2), to(1),
                          to(0));
    const int number = ((p.residues[0].tap_first[0] + tap[0] * p.tap_stride[0]) * p.kernel[1] +
                        p.residues[0].tap_first[1] + tap[1] * p.tap_stride[1]) *
                           p.kernel[2] +
                       p.residues[0].tap_first[2] + tap[2] * p.tap_stride[2];
    hopper::load_box(stage + C::kABytes, &maps.weights, barrier, channel, n0, number);
    next();
  }
  __device__ static void make_panels(uint32_t panels) {
    if constexpr (C::kProducts == 3) {
#pragma unroll
      for (int i = 0; i < C::kN * 8; i += 128) {
        const uint32_t at = panels + (i + threadIdx.x) * 16;
        uint32_t value[4];
        load_words(at, value);
        f32::store_to_panels<C>(at, value);
      }
    }
  }
};

struct Fragments {
  uint32_t row, line, chunk;  // of the matrix row this lane names
  __device__ Fragments(int first_row) {
    const uint32_t lane = threadIdx.x % 32;
    row = first_row + threadIdx.x % 128 / 32 * 16 + lane / 8 % 2 * 8 + lane % 8;
    line = lane % 8;
    chunk = lane / 16;
  }
  __device__ void load(uint32_t stage, int i, int j, uint32_t (&a)[4]) const {
    load_matrices<false>(stage + (row + i * 64) * 128 + ((2 * j + chunk) ^ line) * 16, a);
  }
};

template <class C>
__device__ void write(const Product& p, const Tile& tile, const Share& share, int first_row,
                      const float (&sums)[C::kDown][C::kN / 2]) {
  const int first = share.first_eight<C>(), last = share.last_eight<C>();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int column0 = tile.n0 + lane % 4 * 2;
  const int64_t stride = p.result.strides[1];
  const auto* const bias = static_cast<const float*>(p.conv.bias.data);
  const auto with_bias = [&](float sum, int column) {
    return bias != nullptr && column < p.columns ? sum + bias[column * p.conv.bias.stride] : sum;
  };
  const bool in_pairs = stride == 1 && p.result.strides[0] % 2 == 0 && p.result.strides[2] % 2 == 0 &&
                        p.result.strides[3] % 2 == 0 && p.result.strides[4] % 2 == 0 && p.columns % 2 == 0 &&
                        reinterpret_cast<uintptr_t>(p.result.data) % 8 == 0;
  bool suspect = false;
#pragma unroll
  for (int i = 0; i < C::kDown; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t m = tile.m0 + first_row + i * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4 + half * 8;
      if (m >= p.residues[0].places) continue;
      const Place place = place_of(p.residues[0], m);
      int64_t offset = place.n * p.result.strides[0] + column0 * stride;
#pragma unroll
      for (int a = 0; a < 3; ++a)
        offset += (int64_t{place.at[a]} * p.result_step[a] + p.residues[0].result_first[a]) *
                  p.result.strides[2 + a];
      if (in_pairs) {
        float* to = static_cast<float*>(p.result.data) + offset;
#pragma unroll
        for (int j = 0; j < C::kN / 8; ++j) {
          if (j < first || j >= last) continue;
          const float2 pair{with_bias(sums[i][4 * j + 2 * half], column0 + j * 8),
                            with_bias(sums[i][4 * j + 2 * half + 1], column0 + j * 8 + 1)};
          suspect = suspect || isnan(pair.x) || isnan(pair.y);
          if (column0 + j * 8 < p.columns) *reinterpret_cast<float2*>(to + j * 8) = pair;
        }
      } else {
        float* to = static_cast<float*>(p.result.data) + offset;
#pragma unroll
        for (int j = 0; j < C::kN / 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            if (j < first || j >= last) continue;
            const float sum = with_bias(sums[i][4 * j + 2 * half + e], column0 + j * 8 + e);
            suspect = suspect || isnan(sum);
            if (column0 + j * 8 + e < p.columns) to[(j * 8 + e) * stride] = sum;
          }
      }
    }
  if (p.repair && hopper::any_of_group(static_cast<int>(threadIdx.x) / 128, suspect))
    f32::repair<C>(p, tile.m0 + first_row, tile.n0 + first * 8, (last - first) * 8);
}

// The sums of all the cluster's blocks, of the columns that this one writes. All threads that multiply;
// stages are free once all of them are here.
template <class C>
__device__ void add_shares(const Share& share, uint32_t base, float (&sums)[C::kDown][C::kN / 2]) {
  constexpr int kMultiply = C::kThreads - 128, kEights = C::kN / 8, kPitch = kMultiply * 16;
  static_assert(C::kDown * kEights * kPitch <= C::kStages * C::kStageBytes);
  asm volatile("bar.sync 8, %0;" ::"n"(kMultiply) : "memory");
  const uint32_t mine = base + (threadIdx.x - 128) * 16;
#pragma unroll
  for (int i = 0; i < C::kDown; ++i)
#pragma unroll
    for (int j = 0; j < kEights; ++j) hopper::store_four(mine + (i * kEights + j) * kPitch, sums[i] + 4 * j);
  __syncwarp();
  hopper::sync_cluster();
  const int first = share.first_eight<C>(), last = share.last_eight<C>();
#pragma unroll
  for (int i = 0; i < C::kDown; ++i)
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
      if (j < first || j >= last) continue;
      float4 sum{};
#pragma unroll 4
      for (int rank = 0; rank < share.shares; ++rank) {
        const float4 four =
            hopper::load_four_of_cluster(hopper::address_in(mine, rank) + (i * kEights + j) * kPitch);
        sum.x += four.x, sum.y += four.y, sum.z += four.z, sum.w += four.w;
      }
      sums[i][4 * j] = sum.x, sums[i][4 * j + 1] = sum.y;
      sums[i][4 * j + 2] = sum.z, sums[i][4 * j + 3] = sum.w;
    }
  __syncwarp();
  hopper::sync_cluster();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    f32_kernel(const __grid_constant__ Product p, const __grid_constant__ Maps maps) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t memory[3 * C::kStages];
  const uint32_t base = (shared_address(shared) + 1023) & ~1023u;
  const Barriers<C> barriers(memory);
  const Tiles<C> tiles(p);
  const Share share(maps);
  const bool shared_sums = maps.shares > 1;
  if (threadIdx.x < 128) {
    hopper::give_registers_back<C::kBringing>();
    const int64_t own = shared_sums ? 1 : (int64_t{tiles.count} - blockIdx.x + gridDim.x - 1) / gridDim.x;
    Operands<C> operands(p, maps, tiles, share.first);
    f32::bring<C>(own * share.count, barriers, base, operands);
    if (shared_sums) {
      __syncwarp();
      hopper::sync_cluster();
      hopper::sync_cluster();
    }
  } else {
    hopper::take_registers<C::kMultiplying>();
    const int first_row = (static_cast<int>(threadIdx.x) / 128 - 1) * C::kDown * 64;
    const Fragments fragments(first_row);
    Multiplier<C, Fragments> multiplier(barriers, fragments, base);
    for (uint32_t tile = blockIdx.x / static_cast<uint32_t>(maps.shares); tile < tiles.count;
         tile += gridDim.x) {
      float sums[C::kDown][C::kN / 2];
      multiplier.multiply(sums, share.count);
      if (shared_sums) add_shares<C>(share, base, sums);
      write<C>(p, tiles[tile], share, first_row, sums);
    }
  }
}

template <int kProducts, int kDown, int kN, int kGroups, int kStages>
using Gather = Cut<kProducts, kDown, kN, kGroups, kStages, true>;

// Axes are d, h, w here, and w, h, d in the map.
PlacesMap map_of(const GatherProduct& product, int64_t channels, Maps& maps) {
  PlacesMap map{};
  const ProductAxis& d = product.axes[0];
  map.axes = d.source == 1 && d.results == 1 && d.taps == 1 && d.first == 0 ? 2 : 3;
  map.channels = channels;
  map.batch = product.conv.batch;
  for (int a = 0; a < 3; ++a) {
    const ProductAxis& axis = product.axes[a];
    const int64_t back = axis.tap_step < 0 ? (axis.taps - 1) * axis.tap_step : 0;
    maps.first[a] = static_cast<int>(axis.first + back);
    maps.offset[a] = static_cast<int>(-back);
    map.sizes[2 - a] = axis.source;
    map.first[2 - a] = axis.first + back;
    map.step[2 - a] = axis.step;
    map.count[2 - a] = axis.results;
  }
  maps.axes = map.axes;
  return map;
}

bool can_say(const GatherProduct& product, const PlacesMap& map) {
  int64_t reach[3];
  for (int a = 0; a < 3; ++a) reach[2 - a] = (product.axes[a].taps - 1) * std::abs(product.axes[a].tap_step);
  return is_sayable(map, reach);
}

int steps_of(const Product& p) {
  const Residue& r = p.residues[0];
  const int channels = static_cast<int>(p.filled / 4);
  return static_cast<int>(r.taps[0].divisor * r.taps[1].divisor * r.taps[2].divisor) *
         ((channels + f32::kTerms - 1) / f32::kTerms);
}

template <class C>
bool launch(const Product& p, const GatherProduct& product, int shares, Stream stream) {
  const Residue& r = p.residues[0];
  Maps maps;
  maps.channels = static_cast<int>(p.filled / 4);
  maps.steps = steps_of(p);
  maps.shares = shares;
  PlacesMap places = map_of(product, maps.channels, maps);
  places.places = C::kM;
  if (!can_say(product, places)) return false;
  const auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
  const int64_t kernel = int64_t{p.kernel[0]} * p.kernel[1] * p.kernel[2];
  const BoxMap boxes{3,
                     {u(maps.channels), u(p.columns), u(kernel)},
                     {u(p.filled), u(int64_t{p.filled} * p.columns)},
                     {f32::kTerms, C::kN, 1}};
  if (!make_map(places, MapType::kF32, product.source_rows, &maps.places) ||
      !make_map(boxes, MapType::kF32, product.weight_rows, &maps.weights))
    return false;
  const int64_t tiles = int64_t{(p.columns + C::kN - 1) / C::kN} * ((r.places + C::kM - 1) / C::kM);
  const int64_t blocks = shares > 1 ? tiles * shares : std::min<int64_t>(tiles, product.multiprocessors);
  hopper::start_clusters(f32_kernel<C>, static_cast<unsigned>(shares), static_cast<unsigned>(blocks),
                         C::kThreads, C::kBytes, stream, p, maps);
  return true;
}

F32Tiles tiles_of(const Product& p, const GatherProduct& product) {
  return f32_gather_tiles(p.residues[0].places, p.columns, steps_of(p), product.math,
                          product.multiprocessors);
}

bool launch_three(const Product& p, const GatherProduct& product, Stream stream) {
  const F32Tiles tiles = tiles_of(p, product);
  if (tiles.n == 160) return launch<Gather<3, 1, 160, 2, 3>>(p, product, tiles.shares, stream);
  if (tiles.n == 112) return launch<Gather<3, 1, 112, 2, 4>>(p, product, tiles.shares, stream);
  if (tiles.n == 64) return launch<Gather<3, 1, 64, 3, 5>>(p, product, tiles.shares, stream);
  return launch<Gather<3, 1, 128, 2, 4>>(p, product, tiles.shares, stream);
}

bool launch_one(const Product& p, const GatherProduct& product, Stream stream) {
  const F32Tiles tiles = tiles_of(p, product);
  return tiles.n == 64 ? launch<Gather<1, 1, 64, 3, 6>>(p, product, tiles.shares, stream)
                       : launch<Gather<1, 1, 128, 2, 6>>(p, product, tiles.shares, stream);
}

}  // namespace

bool f32_gather(const Product& p, const GatherProduct& product, Stream stream) {
  if (p.residues[0].steps == 0 || p.columns <= 32 || p.conv.groups != 1 || p.result.dtype != DType::kF32 ||
      p.conv.bias.dtype != DType::kF32)
    return false;
  return product.math == ProductMath::kF32 ? launch_three(p, product, stream)
                                           : launch_one(p, product, stream);
}

}  // namespace retrograd::kernels::cuda
