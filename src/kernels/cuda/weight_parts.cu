// SPDX-License-Identifier: Apache-2.0
// Tiles of taps and channels go through shared memory: parts are read along channels, the result is written
// along whichever of the two is contiguous. Bytes: the parts once, the weights once.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/formulas.cuh"
#include "kernels/cuda/weight_parts.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Parts {
  Conv conv;
  bool repair, along_channels;  // along_channels: neighbours of the result are channels, else taps
  int taps, x_filled, tile_taps, tile_channels, across_taps, across_channels, kh, kw;
  FastDiv by_taps;  // of a tile
  int64_t weights, parts;
};

// Kept out of the kernel's registers.
__device__ __noinline__ float by_formula(const Conv& conv, const Index5& at) {
  return grad_weight_sum(conv, at, 0, 1);
}

// A tile of taps and channels of one y channel: read along channels, written along the result's neighbours.
__global__ void __launch_bounds__(kThreads)
    parts_kernel(const __grid_constant__ Parts p, const float* parts) {
  extern __shared__ float tile[];
  const int t0 = static_cast<int>(blockIdx.x % p.across_taps) * p.tile_taps;
  const unsigned rest = blockIdx.x / p.across_taps;
  const int c0 = static_cast<int>(rest % p.across_channels) * p.tile_channels;
  const int64_t o = rest / p.across_channels;
  const int channels = min(p.tile_channels, static_cast<int>(p.conv.x_channels) - c0),
            taps = min(p.tile_taps, p.taps - t0), pitch = p.tile_taps | 1;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* const from = parts + (o * p.taps + t0) * p.x_filled + c0;
  const int across = (channels + 31) / 32;
  for (int i = warp; i < taps * across; i += kThreads / 32) {
    const int t = i / across, c = i % across * 32 + lane;
    if (c >= channels) continue;
    const float* at = from + static_cast<int64_t>(t) * p.x_filled + c;
    float sum = 0;
#pragma unroll 8
    for (int64_t part = 0; part < p.parts; ++part) sum += at[part * p.weights];
    tile[c * pitch + t] = sum;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < p.tile_taps * channels; i += kThreads) {
    auto rest_of = static_cast<uint32_t>(i);
    int c, t;
    if (p.along_channels) {
      t = i / channels, c = i % channels;
    } else {
      c = static_cast<int>(p.by_taps.split(rest_of)), t = static_cast<int>(rest_of);
    }
    if (t >= taps) continue;
    float sum = tile[c * pitch + t];
    const int tap = t0 + t;
    const Index5 at{o, c0 + c, tap / (p.kh * p.kw), tap / p.kw % p.kh, tap % p.kw};
    if (p.repair && !isfinite(sum)) sum = by_formula(p.conv, at);
    store_any(p.conv.w.dtype, p.conv.w.data, offset_of(p.conv.w, at), sum);
  }
}

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void add_weight_parts(const WeightProduct& product, int64_t parts, Stream stream) {
  const Conv& conv = product.conv;
  Parts p;
  p.conv = conv;
  p.repair = product.padded || product.math == ProductMath::kF32;
  p.along_channels = conv.w.strides[1] == 1;
  p.taps = static_cast<int>(conv.axes[0].kernel * conv.axes[1].kernel * conv.axes[2].kernel);
  p.x_filled =
      static_cast<int>(ceil_of(conv.x_channels, chunk_elements(product.math)) * chunk_elements(product.math));
  p.kh = static_cast<int>(conv.axes[1].kernel);
  p.kw = static_cast<int>(conv.axes[2].kernel);
  p.tile_taps = p.taps < 32 ? p.taps : 32;
  p.by_taps = FastDiv(p.tile_taps);
  p.tile_channels = p.tile_taps < 4 ? 256 : 1024 / p.tile_taps / 32 * 32;
  p.across_taps = static_cast<int>(ceil_of(p.taps, p.tile_taps));
  p.across_channels = static_cast<int>(ceil_of(conv.x_channels, p.tile_channels));
  p.weights = conv.groups * conv.y_channels * p.taps * p.x_filled;
  p.parts = parts;
  const int64_t blocks = conv.groups * conv.y_channels * p.across_taps * p.across_channels;
  parts_kernel<<<static_cast<unsigned>(blocks), kThreads,
                 static_cast<size_t>(p.tile_taps | 1) * p.tile_channels * sizeof(float), stream>>>(
      p, product.workspace);
}

}  // namespace retrograd::kernels::cuda
