// SPDX-License-Identifier: Apache-2.0
// wgmma_weight for 3 x 3 x 3 taps and up to 32 channels on both sides.
//
// A warpgroup multiplies 64 rows at once, y has 32. The other half is the same channels of the pixels one
// line or one plane back, which with the same x makes the next row of taps: Σ y[p − line] · x[p + tap] is the
// sum of tap + line. The nine rows of taps (d, h) are three pairs of lines, one pair of planes and one alone,
//   (0,0)(0,1)  (1,0)(1,1)  (2,0)(2,1)  (0,2)(1,2)  (2,2)
// with the three taps along w as shifts, so a block has all weights and 90 % of its products count. A part of
// the pixels is one block's; walks have a line and a plane more than y.
#include "kernels/cuda/dense/hopper.cuh"
#include "kernels/cuda/dense/tensor_map.h"
#include "kernels/cuda/dense/wgmma.cuh"
#include "kernels/cuda/dense_weight/wgmma_weight.h"
#include "kernels/cuda/launch.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kTerms = 64, kRows = 72;  // places of y and of x in a stage
constexpr int kRow = 64, kWidth = 32;   // bytes and channels of a place
constexpr int kStages = 6, kThreads = 384;
constexpr uint32_t kYTile = kTerms * kRow, kXTile = kRows * kRow;
constexpr int kYTiles = 3, kXTiles = 5;  // here, a line back, a plane back; first rows of taps of the pairs
constexpr uint32_t kXFirst = kYTiles * kYTile, kStageBytes = kXFirst + kXTiles * kXTile;

struct Maps {
  CUtensorMap y[kYTiles], x;
};

// Rows of 64 bytes along the sum, chunk c of row r at c ^ (r / 2 % 4); the next 32 results lie `leading`
// bytes on.
__device__ uint64_t factor(uint32_t address, uint32_t leading) {
  return static_cast<uint64_t>((address & 0x3ffffu) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
         uint64_t{8 * kRow >> 4} << 32 | uint64_t{2} << 62;
}

__device__ void copy_places(const WeightWalk& p, uint32_t first_step, int steps, const Maps& maps,
                            uint32_t base, uint32_t full, uint32_t empty) {
  const WeightUnit& unit = p.units[0];
  hopper::Ring<kStages> ring;
  for (int step = 0; step < steps; ++step, ring.next()) {
    uint32_t rest = (first_step + static_cast<uint32_t>(step)) * kTerms;
    uint32_t lines = unit.counts[2].split(rest);
    uint32_t planes = unit.counts[1].split(lines);
    const int n = static_cast<int>(unit.counts[0].split(planes));
    const int d = static_cast<int>(planes), h = static_cast<int>(lines), w = static_cast<int>(rest);
    const uint32_t stage = base + ring.stage * kStageBytes, barrier = full + 8 * ring.stage;
    hopper::wait(empty + 8 * ring.stage, ring.parity ^ 1);
    hopper::arrive_expecting(barrier, kStageBytes);
#pragma unroll
    for (int t = 0; t < kYTiles; ++t)
      hopper::load_places(stage + t * kYTile, &maps.y[t], barrier, 0, w, h - (t == 1), d - (t == 2), n, 0, 0,
                          0);
#pragma unroll
    for (int t = 0; t < kXTiles; ++t) {
      const int to_d = t == 0 || t == 3 ? 0 : t == 1 ? 1 : 2, to_h = t < 3 ? 0 : 2;
      hopper::load_places(stage + kXFirst + t * kXTile, &maps.x, barrier, 0, unit.x_first[2] + w,
                          unit.x_first[1] + h, unit.x_first[0] + d, n, 0, static_cast<uint16_t>(to_h),
                          static_cast<uint16_t>(to_d));
    }
  }
}

// The first warpgroup has the three pairs of lines, the second the pair of planes and the one alone.
template <class E, bool kLines>
__device__ void multiply(const WeightWalk& p, int steps, uint32_t base, uint32_t full, uint32_t empty,
                         int thread, float* out) {
  constexpr int kProducts = kLines ? 3 : 2;
  float sums[kProducts][48];
#pragma unroll
  for (int i = 0; i < kProducts; ++i)
#pragma unroll
    for (int j = 0; j < 48; ++j) sums[i][j] = 0;
  const uint32_t x_at = base + kXFirst + (kLines ? 0 : 3) * kXTile;
  hopper::Ring<kStages> ring;
  uint32_t last = 0;
  for (int step = 0; step < steps; ++step, ring.next()) {
    hopper::wait(full + 8 * ring.stage, ring.parity);
    const uint32_t stage = ring.stage * kStageBytes;
    hopper::fence_sums();
#pragma unroll
    for (int k = 0; k < kTerms; k += 16) {
      const uint64_t a = factor(base + stage + k * kRow, (kLines ? 1 : 2) * kYTile);
#pragma unroll
      for (int i = 0; i < kProducts; ++i)
        hopper::multiply<E, 3 * kWidth, true, true>(sums[i], a,
                                                    factor(x_at + stage + k * kRow + i * kXTile, kRow), true);
    }
    hopper::close_products();
    hopper::wait_for_products<1>();
    if (step > 0 && thread % 32 == 0) hopper::arrive(empty + 8 * last);
    last = ring.stage;
  }
  hopper::wait_for_products<0>();
  const int lane = thread % 32, row = thread / 32 * 16 + lane / 4, back = row / kWidth;
#pragma unroll
  for (int i = 0; i < kProducts; ++i) {
    if (!kLines && i == 1 && back > 0) continue;
    const int kd = kLines ? i : i == 1 ? 2 : back, kh = kLines ? back : 2;
#pragma unroll
    for (int j = 0; j < 48; j += 2) {
      const int kw = j / 16, c = j % 16 / 4 * 8 + lane % 4 * 2, o = row % kWidth + j % 4 / 2 * 8;
      if (o < p.rows && c < p.x_channels)
        *reinterpret_cast<float2*>(out + (o * 27 + (kd * 3 + kh) * 3 + kw) * p.x_channels + c) =
            float2{sums[i][j], sums[i][j + 1]};
    }
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads, 1)
    pairs_kernel(const __grid_constant__ WeightWalk p, const __grid_constant__ Maps maps,
                 float* __restrict__ parts) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * kStages];
  const uint32_t base = (hopper::shared_address(shared) + 1023u) & ~1023u;
  const uint32_t full = hopper::shared_address(barriers), empty = full + 8 * kStages;
  const WeightUnit& unit = p.units[0];
  const uint32_t first_step = blockIdx.x * unit.part_steps;
  const int steps =
      first_step < unit.steps ? static_cast<int>(min(unit.part_steps, unit.steps - first_step)) : 0;
  if (threadIdx.x == 0) hopper::init_ring<kStages>(full, empty, 1, 8);
  __syncthreads();
  float* const out = parts + blockIdx.x * p.weights;
  if (threadIdx.x < 128) {
    hopper::give_registers_back<40>();
    if (threadIdx.x == 0) copy_places(p, first_step, steps, maps, base, full, empty);
  } else {
    hopper::take_registers<232>();
    if (threadIdx.x < 256)
      multiply<E, true>(p, steps, base, full, empty, static_cast<int>(threadIdx.x) - 128, out);
    else
      multiply<E, false>(p, steps, base, full, empty, static_cast<int>(threadIdx.x) - 256, out);
  }
}

template <class E>
void launch(const WeightPlan& plan, const Maps& maps, float* parts, Stream stream) {
  constexpr int kBytes = kStages * kStageBytes + 1024 + 2048;  // as in wgmma_weight.cu, for sanitizers
  start(pairs_kernel<E>, plan.blocks, kThreads, kBytes, stream, plan.walk, maps, parts);
}

}  // namespace

bool wgmma_weight_pairs(const WeightPlan& plan, RowType type, const void* x_rows, const void* y_rows,
                        float* parts, Stream stream) {
  const MapType map_type = type == RowType::kBF16 ? MapType::kBF16 : MapType::kF16;
  Maps maps;
  for (int t = 0; t < kYTiles; ++t) {
    PlacesMap map = weight_y_map(plan.walk, 0);
    map.row_bytes = kRow;
    if (t > 0) --map.first[t];  // w, h, d
    if (!make_map(map, map_type, y_rows, &maps.y[t])) return false;
  }
  PlacesMap map = weight_x_map(plan.walk, 0);
  map.row_bytes = kRow;
  if (!make_map(map, map_type, x_rows, &maps.x)) return false;
  with_half(dtype_of(type), [&](auto e) { launch<decltype(e)>(plan, maps, parts, stream); });
  return true;
}

}  // namespace retrograd::kernels::cuda
