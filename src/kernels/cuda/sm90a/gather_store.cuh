// SPDX-License-Identifier: Apache-2.0
// From the sums of a warpgroup to the result: 16-byte vectors of channels or of pixels.
#pragma once

#include <type_traits>

#include "kernels/cuda/dense/cluster.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/repair.cuh"
#include "kernels/cuda/sm90a/gather_loop.cuh"

namespace retrograd::kernels::cuda::wgather {

__device__ inline uint32_t pack(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ inline uint32_t pack(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Word i of lane q of four becomes word q of lane i.
__device__ inline void transpose_quad(uint32_t (&words)[4]) {
  const unsigned lane = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t other = __shfl_xor_sync(~0u, lane & 1 ? words[i] : words[i + 1], 1);
    (lane & 1 ? words[i] : words[i + 1]) = other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t other = __shfl_xor_sync(~0u, lane & 2 ? words[i] : words[i + 2], 2);
    (lane & 2 ? words[i] : words[i + 2]) = other;
  }
}

// Eight rows of eight 16-bit elements, a word a lane, become columns.
__device__ inline uint32_t transpose_matrix(uint32_t word) {
  uint32_t result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
  return result;
}

// Where the results of a place begin; −1: it has none.
__device__ inline int64_t offset_of_place(const Args& p, const Walk& walk, uint32_t m) {
  const Place place = place_of(walk, m);
  if (m >= walk.places || place.at[2] >= walk.live) return -1;
  int64_t offset = place.n * p.result.strides[0];
#pragma unroll
  for (int a = 0; a < 3; ++a)
    offset += (int64_t{place.at[a]} * p.result_step[a] + walk.result_first[a]) * p.result.strides[2 + a];
  return offset;
}

// The columns 32·g + 8·(lane % 4) and the seven behind them of one of this lane's rows.
template <class T, int kCount>
__device__ inline void take_vector(const float (&sums)[kCount], int g, int half, uint32_t (&words)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    words[i] = pack(sums[16 * g + 4 * i + 2 * half], sums[16 * g + 4 * i + 2 * half + 1], T{});
  transpose_quad(words);
}

// Where a warpgroup's sums belong, and which units of 64 places by 32 channels this block stores.
struct Corner {
  const Walk* walk;
  uint32_t place;
  int channel, end;  // end: of its group's channels
  uint32_t units;    // a bit each: those of the first 64 places come first
  template <class C>
  __device__ bool has(int band, int g) const {
    return (units >> (band * (C::kColumns / 32) + g) & 1) != 0;
  }
};

// What is computed from it is computed for each tile: kept over the loop, the addresses of all ways to store
// would not fit into the registers.
__device__ inline int thread_of_group() {
  unsigned thread = threadIdx.x % 128;
  asm volatile("" : "+r"(thread));
  return static_cast<int>(thread);
}

// Channels lie side by side.
template <class T, class C>
__device__ void store_rows(const Args& p, const Multiplier<T, C>& product, Corner corner) {
  const int thread = thread_of_group(), lane = thread % 32, warp = thread / 32;
  auto* const result = static_cast<T*>(p.result.data);
#pragma unroll
  for (int i = 0; i < C::kBands; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t m = corner.place + i * 64 + warp * 16 + half * 8 + lane / 4;
      const int channel = corner.channel + lane % 4 * 8;
      const int64_t offset = offset_of_place(p, *corner.walk, m);
      T* const row = result + offset + channel;
#pragma unroll
      for (int g = 0; g < C::kColumns / 32; ++g) {
        if (!corner.has<C>(i, g)) continue;
        uint32_t words[4];
        take_vector<T>(product.sums[i], g, half, words);
        if (offset >= 0 && channel + 32 * g < corner.end)
          *reinterpret_cast<uint4*>(row + 32 * g) = uint4{words[0], words[1], words[2], words[3]};
      }
    }
}

template <int kRun>
using Run = std::conditional_t<
    kRun == 8, uint4,
    std::conditional_t<kRun == 4, uint2, std::conditional_t<kRun == 2, uint32_t, uint16_t>>>;

// Places lie side by side, kRun of them at least. Through shared memory, 64 places of 32 channels at a time.
template <int kRun, class T, class C>
__device__ void store_planes(const Args& p, const Multiplier<T, C>& product, Corner corner,
                             unsigned char* staged, int barrier) {
  constexpr int kLanes = 64 / kRun;  // threads a channel
  const int thread = thread_of_group(), lane = thread % 32, warp = thread / 32;
  auto* const result = static_cast<T*>(p.result.data);
  unsigned char* const source = staged + thread / kLanes * kStagedPitch + thread % kLanes * (2 * kRun);
#pragma unroll
  for (int i = 0; i < C::kBands; ++i) {
    const uint32_t m = corner.place + i * 64 + thread % kLanes * kRun;
    const int64_t offset = offset_of_place(p, *corner.walk, m);
    T* const at = result + offset;
#pragma unroll
    for (int g = 0; g < C::kColumns / 32; ++g) {
      if (!corner.has<C>(i, g)) continue;
      hopper::sync_group(barrier);  // what was staged before has been read
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int j = e / 2, half = e % 2;
        const float* const pair = product.sums[i] + 4 * (4 * g + j) + 2 * half;
        *reinterpret_cast<uint32_t*>(staged + (8 * j + lane / 4) * kStagedPitch +
                                     2 * (warp * 16 + half * 8 + lane % 4 * 2)) =
            transpose_matrix(pack(pair[0], pair[1], T{}));
      }
      hopper::sync_group(barrier);
      const int channel = corner.channel + 32 * g + thread / kLanes;
#pragma unroll 8
      for (int c = 0; c < 32; c += 128 / kLanes)
        if (offset >= 0 && channel + c < corner.end)
          *reinterpret_cast<Run<kRun>*>(at + (channel + c) * p.result.strides[1]) =
              *reinterpret_cast<const Run<kRun>*>(source + c * kStagedPitch);
    }
  }
}

// Whether a sum of this thread is not finite.
template <class T, class C>
__device__ bool is_suspect(const Multiplier<T, C>& product) {
  float zero = 0;
#pragma unroll
  for (int i = 0; i < C::kBands; ++i)
#pragma unroll
    for (int j = 0; j < C::kColumns / 2; ++j) zero = fmaf(product.sums[i][j], 0.0f, zero);
  return zero != 0.0f;  // NaN is not 0 either
}

// Zero times a weight that is not finite is NaN where the mathematics skips the product: results that are NaN
// and whose taps reach beyond the edge, or whose chunks beyond the group, are taken from the formula. The
// warpgroup has just written them. The lanes of a warp look at every fourth place, one each, for those that
// reach an edge and are not NaN in all channels; then they have 32 channels of one such place after the
// other. What is to be computed waits, one result a lane, until there are 32: a column that is NaN as a whole
// has one of each place.
template <class T, class C>
__device__ __noinline__ void repair(const Args& p, Corner corner) {
  static_assert(C::kColumns % 32 == 0);
  auto* const results = static_cast<T*>(p.result.data);
  const Result result = p.forward ? Result::kForward : Result::kGradInput;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  Index5 waiting{};
  T* target = nullptr;
  int count = 0;  // of lanes with one
  const auto compute = [&] {
    repair_open(p.conv, result, lane < count, waiting, [&](float sum) { *target = from_float<T>(sum); });
    count = 0;
  };
#pragma unroll 1
  for (int first = warp; first < C::kBands * 64; first += 4 * 32) {
    const int row = first + 4 * lane;
    const uint32_t m = corner.place + row;
    const Walk& walk = *corner.walk;
    const int64_t own_offset = row < C::kBands * 64 ? offset_of_place(p, walk, m) : -1;
    const Place place = place_of(walk, own_offset < 0 ? corner.place : m);
    const Index5 own{place.n, corner.channel, int64_t{place.at[0]} * p.result_step[0] + walk.result_first[0],
                     int64_t{place.at[1]} * p.result_step[1] + walk.result_first[1],
                     int64_t{place.at[2]} * p.result_step[2] + walk.result_first[2]};
    FirstTerm own_start{};
    const bool at_edge = own_offset >= 0 && (p.mixes || reaches_edge(p.conv, result, own));
    if (at_edge) own_start = first_term(p.conv, result, own);
    __syncwarp();
#pragma unroll 1
    for (unsigned rest = __ballot_sync(~0u, at_edge && !own_start.is_all_nan()); rest != 0;
         rest &= rest - 1) {
      const int owner = __ffs(static_cast<int>(rest)) - 1;
      const auto of_owner = [&](int64_t value) {
        return static_cast<int64_t>(__shfl_sync(~0u, static_cast<long long>(value), owner));
      };
      Index5 index{of_owner(own.n), own.c, of_owner(own.d), of_owner(own.h), of_owner(own.w)};
      const FirstTerm start{__shfl_sync(~0u, static_cast<int>(own_start.any), owner) != 0,
                            __shfl_sync(~0u, own_start.source, owner), of_owner(own_start.weight),
                            of_owner(own_start.step), own.c};
      T* const results_of_place = results + of_owner(own_offset);
#pragma unroll 1
      for (int column = lane; column < C::kColumns; column += 32) {
        if (!corner.has<C>((first + 4 * owner) / 64, column / 32)) continue;
        index.c = corner.channel + column;
        T* const element = results_of_place + index.c * p.result.strides[1];
        const bool suspect = index.c < corner.end && isnan(to_float(*element));
        const unsigned open = __ballot_sync(~0u, suspect && !start.is_nan(p.conv, index.c));
        const int more = __popc(open);
        if (count + more > 32) compute();
        if (lane >= count && lane < count + more) {
          const int step = nth_bit(open, lane - count) - lane;
          waiting = {index.n, index.c + step, index.d, index.h, index.w};
          target = element + step * p.result.strides[1];
        }
        count += more;
      }
    }
  }
  compute();
}

// Every row of sums has the same bias: the warpgroup brings it into shared memory once.
template <class T, class C>
__device__ void add_bias(const Args& p, Multiplier<T, C>& product, const Corner& corner, float* staged,
                         int barrier) {
  static_assert(C::kColumns * 4 <= C::kStagedBytes);
  hopper::sync_group(barrier);  // what was staged before has been read
  for (int i = static_cast<int>(threadIdx.x) % 128; i < C::kColumns; i += 128)
    staged[i] = corner.channel + i < corner.end ? bias_of(p.conv, corner.channel + i) : 0.0f;
  hopper::sync_group(barrier);
#pragma unroll
  for (int j = 0; j < C::kColumns / 8; ++j) {
    const float2 pair = *reinterpret_cast<const float2*>(staged + 8 * j + threadIdx.x % 4 * 2);
#pragma unroll
    for (int i = 0; i < C::kBands; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        product.sums[i][4 * j + 2 * half] += pair.x;
        product.sums[i][4 * j + 2 * half + 1] += pair.y;
      }
  }
}

// The units that this block of a cluster of so many stores.
__device__ inline uint32_t units_of_rank(int shares) {
  uint32_t units = 0;
  for (int i = static_cast<int>(blockIdx.x % static_cast<uint32_t>(shares)); i < 32; i += shares)
    units |= 1u << i;
  return units;
}

// The units of the sums that are this block's become those of the whole cluster, added in the order of ranks.
// All threads that multiply; the others take part in both barriers of the cluster. Stages are free once all
// threads of the block are here, and there is no further tile.
template <class T, class C>
__device__ void add_shares(const Args& p, Multiplier<T, C>& product, const Corner& corner, uint32_t stages) {
  constexpr int kUnits = C::kColumns / 32, kPitch = C::kMultiply * 16;
  static_assert(C::kBands * kUnits * 4 * kPitch <= C::kStages * C::kStageBytes);
  asm volatile("bar.sync 8, %0;" ::"n"(C::kMultiply) : "memory");
  const uint32_t mine = stages + threadIdx.x * 16;
#pragma unroll
  for (int i = 0; i < C::kBands; ++i)
#pragma unroll
    for (int j = 0; j < kUnits * 4; ++j)
      hopper::store_four(mine + (i * kUnits * 4 + j) * kPitch, product.sums[i] + 4 * j);
  hopper::sync_cluster();
#pragma unroll
  for (int i = 0; i < C::kBands; ++i)
#pragma unroll
    for (int g = 0; g < kUnits; ++g) {
      if (!corner.has<C>(i, g)) continue;
      float* const sums = product.sums[i] + 16 * g;
#pragma unroll
      for (int e = 0; e < 16; ++e) sums[e] = 0;
#pragma unroll 2
      for (int rank = 0; rank < p.shares; ++rank) {
        const uint32_t theirs = hopper::address_in(mine, rank) + (i * kUnits + g) * 4 * kPitch;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 four = hopper::load_four_of_cluster(theirs + j * kPitch);
          sums[4 * j] += four.x;
          sums[4 * j + 1] += four.y;
          sums[4 * j + 2] += four.z;
          sums[4 * j + 3] += four.w;
        }
      }
    }
  hopper::sync_cluster();  // nobody leaves before all have read
}

// Of a warpgroup of the block.
template <class C>
__device__ Corner corner_of(const Args& p, const Tile& tile, int warpgroup) {
  const int first = tile.group * p.columns;
  return {tile.walk, tile.place + warpgroup * (C::kBands * 64), first + tile.channel, first + p.columns,
          p.shares > 1 ? units_of_rank(p.shares) : ~0u};
}

// Whether some of the sums are not finite and may have to be repaired. `barrier` and `staged` are this
// warpgroup's.
template <class T, class C>
__device__ bool store(const Args& p, Multiplier<T, C>& product, Corner corner, unsigned char* staged,
                      int barrier) {
  if (p.conv.bias.data != nullptr) add_bias(p, product, corner, reinterpret_cast<float*>(staged), barrier);
  const bool suspect = p.repair && hopper::any_of_group(barrier, is_suspect(product));
  if (p.result.strides[1] == 1)
    store_rows(p, product, corner);
  else if (p.run == 8)
    store_planes<8>(p, product, corner, staged, barrier);
  else if (p.run == 4)
    store_planes<4>(p, product, corner, staged, barrier);
  else if (p.run == 2)
    store_planes<2>(p, product, corner, staged, barrier);
  else
    store_planes<1>(p, product, corner, staged, barrier);
  return suspect;
}

}  // namespace retrograd::kernels::cuda::wgather
