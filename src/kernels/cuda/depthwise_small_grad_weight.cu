// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,h,v} x[n, h − P + kh, v − P + kw] · y[n, h, v] of one channel, on planes of 14x14, on
// tensor cores.
//
// D_kh[p][q] = Σ_h x[h − P + kh][p] · y[h][q] is a product of 16 x 16 matrices, and w[kh,kw] the sum of D_kh
// along the diagonal p − q = kw − P. A block takes one channel, a warp every fourth image; the sums stay in
// registers over all images, and the next planes are on their way meanwhile. Bytes: x once, y once.
//
// Values beyond the edge are zeros; who adds the parts takes a sum that is not finite from the formula.
#include "kernels/cuda/depthwise_small.cuh"
#include "kernels/cuda/depthwise_small.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int64_t kWantedBlocks = 528;

template <class T, int kK, int kAhead>
__global__ void __launch_bounds__(kWarps * 32)
    small_weight_kernel(int channels, int images, int in_part, const T* x, const T* y, float* parts) {
  constexpr int kP = kK / 2, kTaps = kK * kK, kStages = kAhead + 1;
  constexpr int kXBytes = small_bytes(kP), kStageBytes = kXBytes + small_bytes(0);
  static_assert(kStageBytes >= 16 * 17 * 4);
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ float of_warps[kWarps][kTaps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t channel = blockIdx.x;
  const int first = static_cast<int>(blockIdx.y) * in_part + warp,
            last = min(static_cast<int>(blockIdx.y + 1) * in_part, images);
  unsigned char* const own = shared + warp * kStages * kStageBytes;
  for (int i = lane; i < kStages * kStageBytes / 16; i += 32) reinterpret_cast<uint4*>(own)[i] = uint4{};
  __syncwarp();
  const uint32_t base = shared_address(own);
  const SmallCopy copy_x(lane, kP), copy_y(lane, 0);
  const int64_t distance = static_cast<int64_t>(channels) * kSmallPlane;
  int64_t from = first * distance + channel * kSmallPlane;
  uint32_t into = 0;
  int next = first;
  const auto start = [&]() {
    if (next < last) {
      copy_x.start(base + into, x + from);
      copy_y.start(base + into + kXBytes, y + from);
    }
    close_copies();
    from += kWarps * distance;
    next += kWarps;
    into = into + kStageBytes == kStages * kStageBytes ? 0 : into + kStageBytes;
  };
#pragma unroll
  for (int i = 0; i < kAhead; ++i) start();

  // The fragments are the planes turned around: rows of shared memory are the terms of the sums.
  const uint32_t of_x = (lane % 8 + lane / 16 * 8) * kSmallPitch + lane / 8 % 2 * 16;
  const uint32_t of_y = kXBytes + (lane % 8 + lane / 8 % 2 * 8) * kSmallPitch + lane / 16 * 16;
  float sums[kK][2][4] = {};
  uint32_t stage = 0;
  for (int n = first; n < last; n += kWarps) {
    wait_for_copies<kAhead - 1>();
    __syncwarp();
    uint32_t columns[4];
    load_matrices<true>(base + stage + of_y, columns);
#pragma unroll
    for (int kh = 0; kh < kK; ++kh) {
      uint32_t rows[4];
      load_matrices<true>(base + stage + of_x + kh * kSmallPitch, rows);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        multiply_add(sums[kh][half], rows, columns[2 * half], columns[2 * half + 1], T{});
    }
    stage = stage + kStageBytes == kStages * kStageBytes ? 0 : stage + kStageBytes;
    start();
  }
  wait_for_copies<0>();
  __syncwarp();
  // Diagonals, through this warp's own shared memory: [p][q] of one kh after another.
  auto* const matrix = reinterpret_cast<float*>(own);
  constexpr int kPitch = 17;
#pragma unroll
  for (int kh = 0; kh < kK; ++kh) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        matrix[(lane / 4 + j / 2 * 8) * kPitch + half * 8 + lane % 4 * 2 + j % 2] = sums[kh][half][j];
    __syncwarp();
    if (lane < kK) {
      float diagonal = 0;
      for (int q = 0; q < kSmallWidth; ++q) {
        const int p = q + lane - kP;
        if (p >= 0 && p < kSmallWidth) diagonal += matrix[p * kPitch + q];
      }
      of_warps[warp][kh * kK + lane] = diagonal;
    }
    __syncwarp();
  }
  __syncthreads();
  for (int tap = static_cast<int>(threadIdx.x); tap < kTaps; tap += kWarps * 32) {
    float sum = 0;
    for (int i = 0; i < kWarps; ++i) sum += of_warps[i][tap];
    parts[(blockIdx.y * int64_t{channels} + channel) * kTaps + tap] = sum;
  }
}

int64_t images_in_part(const Conv& conv) {
  const int64_t wanted = (kWantedBlocks + conv.groups - 1) / conv.groups;
  const int64_t most = (conv.batch + kWarps - 1) / kWarps;  // an image a warp
  const int64_t parts = wanted < most ? wanted : most;
  return (conv.batch + parts - 1) / parts;
}

template <class T, int kK, int kAhead = 2>
void launch(const Conv& conv, float* workspace, Stream stream) {
  constexpr int kBytes = kWarps * (kAhead + 1) * (small_bytes(kK / 2) + small_bytes(0));
  if (kBytes > 40 << 10)
    cudaFuncSetAttribute(small_weight_kernel<T, kK, kAhead>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         kBytes);
  const int64_t in_part = images_in_part(conv);
  const dim3 grid(static_cast<unsigned>(conv.groups),
                  static_cast<unsigned>((conv.batch + in_part - 1) / in_part));
  small_weight_kernel<T, kK, kAhead><<<grid, kWarps * 32, kBytes, stream>>>(
      static_cast<int>(conv.groups), static_cast<int>(conv.batch), static_cast<int>(in_part),
      static_cast<const T*>(conv.x.data), static_cast<const T*>(conv.y.data), workspace);
}

template <class T>
void launch_kernel(const Conv& conv, float* workspace, Stream stream) {
  switch (conv.axes[2].kernel) {
    case 3:
      return launch<T, 3>(conv, workspace, stream);
    case 5:
      return launch<T, 5>(conv, workspace, stream);
    default:
      return launch<T, 7>(conv, workspace, stream);
  }
}

}  // namespace

int64_t depthwise_small_parts(const Conv& conv) {
  const int64_t in_part = images_in_part(conv);
  return (conv.batch + in_part - 1) / in_part;
}

void depthwise_small_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  if (conv.x.dtype == DType::kF16) return launch_kernel<__half>(conv, workspace, stream);
  launch_kernel<__nv_bfloat16>(conv, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
