// SPDX-License-Identifier: Apache-2.0
// w[kh,kw] = Σ_{n,o} x[n, o − P + (kh,kw)] · y[n, o] of each channel, on boxes of channels-last tensors.
//
// A thread keeps two rows of fourteen values of y and all K² sums of its channels in registers and reads the
// K
// + 1 rows of x that meet them from shared memory. A block takes box after box of the same channels; in the
// end it adds what its threads have, in a fixed order. Bytes: x once and what boxes share, y once.
//
// Values beyond the edge are zeros; who adds the parts takes a sum that is NaN from the formula.
#include "kernels/cuda/depthwise_nhwc/depthwise_boxes.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_boxes.h"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

// Blocks that multiprocessors have room for.

template <class T, int kK, int kV, int kStages>
__global__ void __launch_bounds__(kBoxStrips* kBoxChannels / kV, kV == 2 ? 2 : 1)
    boxes_weight_kernel(const __grid_constant__ Boxes p, const T* x, const T* y, float* parts) {
  constexpr int kP = kK / 2, kSide = kBoxWidth + 2 * kP, kLanes = kBoxChannels / kV, kTaps = kK * kK;
  constexpr int kOfX = kSide * kSide * kBoxChannels, kStage = kOfX + kBoxWidth * kBoxWidth * kBoxChannels;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const shared = reinterpret_cast<T*>(memory);
  const int lane = static_cast<int>(threadIdx.x) % kLanes, strip = static_cast<int>(threadIdx.x) / kLanes;
  const int channel0 = static_cast<int>(blockIdx.y) * kBoxChannels;
  const auto start = [&](uint32_t box, int stage) {
    if (box < p.boxes) {
      const BoxPlace at = place_of(p, box);
      T* const target = shared + stage * kStage;
      start_box<T, kSide>(target, x, p, at.image, at.row - kP, at.column - kP, channel0);
      start_box<T, kBoxWidth>(target + kOfX, y, p, at.image, at.row, at.column, channel0);
    }
    close_copies();
  };
  if (kStages == 2) start(blockIdx.x, 0);
  float sums[kTaps][kV] = {};
  int stage = 0;
  for (uint32_t box = blockIdx.x; box < p.boxes; box += gridDim.x) {
    start(box + (kStages - 1) * gridDim.x, (stage + 1) % kStages);
    wait_for_copies<kStages - 1>();
    __syncthreads();
    const T* const of_x = shared + stage * kStage + strip * kBoxRows * kSide * kBoxChannels + lane * kV;
    const T* const of_y =
        shared + stage * kStage + kOfX + strip * kBoxRows * kBoxWidth * kBoxChannels + lane * kV;
    float g[kBoxRows][kBoxWidth][kV];
#pragma unroll
    for (int a = 0; a < kBoxRows; ++a)
#pragma unroll
      for (int b = 0; b < kBoxWidth; ++b)
        load_pack<T, kV>(of_y + (a * kBoxWidth + b) * kBoxChannels, g[a][b]);
#pragma unroll
    for (int r = 0; r < kBoxRows + 2 * kP; ++r)
#pragma unroll
      for (int c = 0; c < kSide; ++c) {
        float value[kV];
        load_pack<T, kV>(of_x + (r * kSide + c) * kBoxChannels, value);
#pragma unroll
        for (int a = 0; a < kBoxRows; ++a) {
          const int kh = r - a;
          if (kh < 0 || kh >= kK) continue;
#pragma unroll
          for (int b = 0; b < kBoxWidth; ++b) {
            const int kw = c - b;
            if (kw < 0 || kw >= kK) continue;
#pragma unroll
            for (int v = 0; v < kV; ++v)
              sums[kh * kK + kw][v] = fmaf(value[v], g[a][b][v], sums[kh * kK + kw][v]);
          }
        }
      }
    __syncthreads();
    stage = (stage + 1) % kStages;
  }
  wait_for_copies<0>();
  auto* const all = reinterpret_cast<float*>(memory);  // [strip][kw][channel] of one kh after another
#pragma unroll
  for (int kh = 0; kh < kK; ++kh) {
    __syncthreads();
#pragma unroll
    for (int kw = 0; kw < kK; ++kw)
#pragma unroll
      for (int v = 0; v < kV; ++v)
        all[(strip * kK + kw) * kBoxChannels + lane * kV + v] = sums[kh * kK + kw][v];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kK * kBoxChannels; i += static_cast<int>(blockDim.x)) {
      const int channel = channel0 + i % kBoxChannels;
      float sum = 0;
      for (int s = 0; s < kBoxStrips; ++s) sum += all[s * kK * kBoxChannels + i];
      if (channel < p.channels)
        parts[(static_cast<int64_t>(blockIdx.x) * kTaps + kh * kK + i / kBoxChannels) * p.channels +
              channel] = sum;
    }
  }
}

template <class T, int kK, int kV, int kStages>
void launch(const Conv& conv, int64_t at_once, float* workspace, Stream stream) {
  constexpr int kSide = kBoxWidth + kK - 1;
  constexpr int kBytes = kStages * (kSide * kSide + kBoxWidth * kBoxWidth) * kBoxChannels * int{sizeof(T)};
  cudaFuncSetAttribute(boxes_weight_kernel<T, kK, kV, kStages>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kBytes);
  const Boxes p = boxes_of(conv);
  const dim3 grid(static_cast<unsigned>(box_blocks(p, at_once)),
                  static_cast<unsigned>((p.channels + kBoxChannels - 1) / kBoxChannels));
  boxes_weight_kernel<T, kK, kV, kStages><<<grid, kBoxStrips * kBoxChannels / kV, kBytes, stream>>>(
      p, static_cast<const T*>(conv.x.data), static_cast<const T*>(conv.y.data), workspace);
}

template <class T>
void launch_kernel(const Conv& conv, float* workspace, Stream stream) {
  conv.axes[2].kernel == 5 ? launch<T, 5, 1, 1>(conv, boxes_at_once(conv), workspace, stream)
                           : launch<T, 7, 1, 1>(conv, boxes_at_once(conv), workspace, stream);
}

}  // namespace

void depthwise_boxes_grad_weight(const Conv& conv, float* workspace, Stream stream) {
  if (conv.x.dtype == DType::kF16) return launch_kernel<__half>(conv, workspace, stream);
  launch_kernel<__nv_bfloat16>(conv, workspace, stream);
}

}  // namespace retrograd::kernels::cuda
