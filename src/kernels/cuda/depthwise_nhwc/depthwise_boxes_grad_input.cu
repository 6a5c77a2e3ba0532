// SPDX-License-Identifier: Apache-2.0
// x[q] = Σ_k y[q + P − k] · w[k] of each channel, on boxes of channels-last tensors.
//
// A thread keeps the weights of its channels in registers and makes two rows of fourteen results from K + 1
// rows of y in shared memory: 10 products or more a value that it reads. A block takes box after box of the
// same channels. Bytes: y once and what boxes share, x once; 5x5 takes about as long on FP32 units as its
// bytes, 7x7 twice as long.
//
// Values beyond the edge count as zero. Zero times a weight that is not finite would be NaN, so where a block
// finds such a weight, results that are NaN are taken from the formula in boxes at an edge.
#include "kernels/cuda/depthwise_nhwc/depthwise_boxes.cuh"
#include "kernels/cuda/depthwise_nhwc/depthwise_boxes.h"
#include "kernels/cuda/repair.cuh"
#include "kernels/cuda/types.h"

namespace retrograd::kernels::cuda {
namespace {

template <class T>
__device__ __noinline__ void repair_box(const Conv& conv, const Boxes& p, const BoxPlace& at, int channel0) {
  for (int i = static_cast<int>(threadIdx.x); i < kBoxWidth * kBoxWidth * kBoxChannels;
       i += static_cast<int>(blockDim.x)) {
    const int channel = channel0 + i % kBoxChannels, place = i / kBoxChannels;
    const Index5 index{at.image, channel, 0, at.row + place / kBoxWidth, at.column + place % kBoxWidth};
    if (channel >= p.channels || index.h >= p.height || index.w >= p.width) continue;
    T& result = static_cast<T*>(conv.x.data)[offset_of(conv.x, index)];
    if (isnan(to_float(result)) && !begins_with_nan(conv, Result::kGradInput, index))
      result = from_float<T>(grad_input_sum(conv, index));
  }
}

template <class T, int kK, int kV, int kStages>
__global__ void __launch_bounds__(kBoxStrips* kBoxChannels / kV, kV == 2 ? 2 : 1)
    boxes_kernel(const __grid_constant__ Conv conv, const __grid_constant__ Boxes p, const T* y,
                 const T* weights, T* x) {
  constexpr int kP = kK / 2, kSide = kBoxWidth + 2 * kP, kLanes = kBoxChannels / kV;
  constexpr int kStage = kSide * kSide * kBoxChannels;
  extern __shared__ __align__(16) unsigned char memory[];
  T* const shared = reinterpret_cast<T*>(memory);
  const int lane = static_cast<int>(threadIdx.x) % kLanes, strip = static_cast<int>(threadIdx.x) / kLanes;
  const int channel0 = static_cast<int>(blockIdx.y) * kBoxChannels, channel = channel0 + lane * kV;
  const auto start = [&](uint32_t box, int stage) {
    if (box < p.boxes) {
      const BoxPlace at = place_of(p, box);
      start_box<T, kSide>(shared + stage * kStage, y, p, at.image, at.row - kP, at.column - kP, channel0);
    }
    close_copies();
  };
  if (kStages == 2) start(blockIdx.x, 0);
  float w[kK * kK][kV];
  bool finite = true;
#pragma unroll
  for (int i = 0; i < kK * kK; ++i)
#pragma unroll
    for (int v = 0; v < kV; ++v) {
      w[i][v] = channel + v < p.channels
                    ? to_float(weights[(channel + v) * conv.w.strides[0] + i / kK * conv.w.strides[3] +
                                       i % kK * conv.w.strides[4]])
                    : 0.0f;
      finite = finite && isfinite(w[i][v]);
    }
  finite = __syncthreads_and(finite);
  int stage = 0;
  for (uint32_t box = blockIdx.x; box < p.boxes; box += gridDim.x) {
    start(box + (kStages - 1) * gridDim.x, (stage + 1) % kStages);
    wait_for_copies<kStages - 1>();
    __syncthreads();
    const T* const from = shared + stage * kStage + strip * kBoxRows * kSide * kBoxChannels + lane * kV;
    float sums[kBoxRows][kBoxWidth][kV] = {};
#pragma unroll
    for (int r = 0; r < kBoxRows + 2 * kP; ++r)
#pragma unroll
      for (int c = 0; c < kSide; ++c) {
        float value[kV];
        load_pack<T, kV>(from + (r * kSide + c) * kBoxChannels, value);
#pragma unroll
        for (int a = 0; a < kBoxRows; ++a) {
          const int kh = a + 2 * kP - r;
          if (kh < 0 || kh >= kK) continue;
#pragma unroll
          for (int b = 0; b < kBoxWidth; ++b) {
            const int kw = b + 2 * kP - c;
            if (kw < 0 || kw >= kK) continue;
#pragma unroll
            for (int v = 0; v < kV; ++v) sums[a][b][v] = fmaf(value[v], w[kh * kK + kw][v], sums[a][b][v]);
          }
        }
      }
    const BoxPlace at = place_of(p, box);
    T* const out = x + (at.image * p.height * p.width + at.row * p.width + at.column) * p.channels + channel;
    if (channel < p.channels)
#pragma unroll
      for (int a = 0; a < kBoxRows; ++a)
#pragma unroll
        for (int b = 0; b < kBoxWidth; ++b)
          if (at.row + strip * kBoxRows + a < p.height && at.column + b < p.width)
            store_pack<T, kV>(out + ((strip * kBoxRows + a) * p.width + b) * p.channels, sums[a][b]);
    __syncthreads();
    stage = (stage + 1) % kStages;
  }
  if (finite) return;
  for (uint32_t box = blockIdx.x; box < p.boxes; box += gridDim.x) {
    const BoxPlace at = place_of(p, box);
    if (at.row < kP || at.column < kP || at.row + kBoxWidth + kP > p.height ||
        at.column + kBoxWidth + kP > p.width)
      repair_box<T>(conv, p, at, channel0);
  }
}

template <class T, int kK, int kV, int kStages>
void launch(const Conv& conv, int64_t at_once, Stream stream) {
  constexpr int kSide = kBoxWidth + kK - 1, kBytes = kStages * kSide * kSide * kBoxChannels * int{sizeof(T)};
  cudaFuncSetAttribute(boxes_kernel<T, kK, kV, kStages>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const Boxes p = boxes_of(conv);
  const dim3 grid(static_cast<unsigned>(box_blocks(p, at_once)),
                  static_cast<unsigned>((p.channels + kBoxChannels - 1) / kBoxChannels));
  boxes_kernel<T, kK, kV, kStages><<<grid, kBoxStrips * kBoxChannels / kV, kBytes, stream>>>(
      conv, p, static_cast<const T*>(conv.y.data), static_cast<const T*>(conv.w.data),
      static_cast<T*>(conv.x.data));
}

template <class T>
void launch_kernel(const Conv& conv, Stream stream) {
  conv.axes[2].kernel == 5 ? launch<T, 5, 2, 2>(conv, 264, stream) : launch<T, 7, 1, 1>(conv, 132, stream);
}

}  // namespace

void depthwise_boxes_grad_input(const Conv& conv, Stream stream) {
  if (conv.x.dtype == DType::kF16) return launch_kernel<__half>(conv, stream);
  launch_kernel<__nv_bfloat16>(conv, stream);
}

}  // namespace retrograd::kernels::cuda
