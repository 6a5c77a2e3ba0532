// SPDX-License-Identifier: Apache-2.0
// x[q] = Σ_k y[q + P − k] · w[k] of one channel, on tensor cores.
//
// A window is two neighbouring chunks of eight columns of y. The eight results around its middle are sums
// over the window: products of sixteen values and a 16 x 8 matrix that has a row of the kernel along its
// diagonals. Eight windows of two rows of x make a matrix of 16 rows, and K such products all their sums; 56
// of 128 products count for K = 7, at some ten times the rate of FP32 units. A warp takes a band of a plane,
// which it copies into shared memory as it lies, and walks down it two rows at a time: the fragments of the
// last rows stay in registers, so every value is read from shared memory four times, whatever K is. Bytes: y
// once, x once.
//
// Chunks beyond the edge are read from a row of zeros, and the matrices are zero beside their diagonals; a
// result that is NaN, where a zero may have met an infinity, is taken from the formula.
#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/depthwise/depthwise_band.cuh"
#include "kernels/cuda/depthwise/depthwise_plan.h"
#include "kernels/cuda/depthwise/depthwise_repair.cuh"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kWarps = 4, kWindows = 8;
constexpr int kBandBytes = 7168;  // of a warp's rows, about

struct Gather {
  int channels, height, width;
  int bands, band_rows;  // of a plane; even
  int strips;            // of eight windows of a row
  uint32_t units;        // bands of all planes
  FastDiv by_bands, by_channels;
};

template <class T, int kK>
__global__ void __launch_bounds__(kWarps * 32, 6)
    bands_gather_kernel(const __grid_constant__ Conv conv, const __grid_constant__ Gather p, const T* y,
                        const T* weights, T* x) {
  constexpr int kP = kK / 2;
  extern __shared__ __align__(16) unsigned char shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  uint32_t band_number = blockIdx.x * kWarps + warp;
  if (band_number >= p.units) return;
  const uint32_t plane = p.by_bands.split(band_number);
  uint32_t channel = plane;
  const uint32_t image = p.by_channels.split(channel);
  const int h0 = static_cast<int>(band_number) * p.band_rows, rows = min(p.band_rows, p.height - h0);
  const int row_bytes = p.width * 2, room = (p.band_rows + 2 * kP + 1) * row_bytes;
  unsigned char* const own = shared + warp * (room + BandKernel<T, kK>::kBytes);
  T* const kernel = reinterpret_cast<T*>(own + room);
  // Rows h0 − P on, of which the first are zeros if the band is the plane's first, and the last if it is the
  // last; a row that is never filled comes after them.
  const int before = max(0, kP - h0), first = h0 - kP + before;
  const int count = min(h0 + p.band_rows + kP, p.height) - first;
  const int begin = before * row_bytes, end = begin + count * row_bytes;
  const char* const from =
      reinterpret_cast<const char*>(y + (int64_t{plane} * p.height + first) * p.width) - begin;
  const uint32_t base = shared_address(own);
#pragma unroll 8
  for (int i = begin + lane * 16; i < end; i += 512) copy_chunk(base + i, from + i, true);
  close_copies();
  for (int i = lane * 16; i < begin; i += 512) *reinterpret_cast<uint4*>(own + i) = uint4{};
  for (int i = end + lane * 16; i < room; i += 512) *reinterpret_cast<uint4*>(own + i) = uint4{};

  BandKernel<T, kK>::load(kernel, conv, weights, channel, lane);
  wait_for_copies<0>();
  __syncwarp();

  const int q = lane / 4, t = lane % 4;
  uint32_t band[kK][2];  // of kernel row kh: columns 2t, 2t + 1 and 2t + 8, 2t + 9 of a window; result q
#pragma unroll
  for (int kh = 0; kh < kK; ++kh)
#pragma unroll
    for (int i = 0; i < 2; ++i) band[kh][i] = BandKernel<T, kK>::pair(kernel, kh, q + kP + 4 - 2 * t - 8 * i);

  const int chunks = p.width / 8;
  float witness = 0;
  for (int strip = 0; strip < p.strips; ++strip) {
    // Lanes name rows of matrices: the first or second row of a pair, a window, its first or second chunk.
    const int chunk = strip * kWindows + lane % 8 - 1 + lane / 16;
    const bool there = chunk >= 0 && chunk < chunks;
    uint32_t at = base + (there ? lane / 8 % 2 * row_bytes + chunk * 16 : room - row_bytes);
    const uint32_t step = there ? row_bytes : 0;
    const int column = (strip * kWindows + q) * 8 - 4 + 2 * t;
    const bool mine = column >= 0 && column < p.width;
    T* out = x + (int64_t{plane} * p.height + h0) * p.width + column;
    uint32_t pairs[2 * kP + 2][4];  // rows r and r + 1 of the band, in slot r % (2P + 2)
#pragma unroll
    for (int r = 0; r < 2 * kP; ++r, at += step) load_matrices<false>(at, pairs[r]);
    for (int row0 = 0; row0 < rows; row0 += 2 * (kP + 1)) {
#pragma unroll
      for (int v = 0; v < 2 * (kP + 1); v += 2) {
        const int row = row0 + v;
        if (row >= rows) break;
        load_matrices<false>(at, pairs[(v + 2 * kP) % (2 * kP + 2)]);
        at += step;
        load_matrices<false>(at, pairs[(v + 2 * kP + 1) % (2 * kP + 2)]);
        at += step;
        float sums[2][4] = {};
#pragma unroll
        for (int o = 0; o < kK; ++o)
          multiply_add(sums[o % 2], pairs[(v + o) % (2 * kP + 2)], band[2 * kP - o][0], band[2 * kP - o][1],
                       T{});
        float results[2][2];
#pragma unroll
        for (int i = 0; i < 4; ++i) results[i / 2][i % 2] = sums[0][i] + sums[1][i];
#pragma unroll
        for (int i = 0; i < 4; ++i) watch(witness, results[i / 2][i % 2]);
        if (mine) store_pack<T, 2>(out, results[0]);
        if (mine && row + 1 < rows) store_pack<T, 2>(out + p.width, results[1]);
        out += 2 * p.width;
      }
    }
  }
  if (__any_sync(~0u, isnan(witness)))
    repair_rows<T>(conv, Result::kGradInput, image, static_cast<int>(channel), h0, rows);
}

Gather gather_of(const Conv& conv) {
  Gather p;
  p.channels = static_cast<int>(conv.groups);
  p.height = static_cast<int>(conv.axes[1].x);
  p.width = static_cast<int>(conv.axes[2].x);
  const int most = kBandBytes / (2 * p.width) / 2 * 2, even = (p.height + 1) / 2;
  p.bands = (p.height + most - 1) / most;
  p.band_rows = (even + p.bands - 1) / p.bands * 2;
  p.bands = (p.height + p.band_rows - 1) / p.band_rows;
  p.strips = (p.width / 8 + 1 + kWindows - 1) / kWindows;
  p.units = static_cast<uint32_t>(conv.batch * conv.groups * p.bands);
  p.by_bands = FastDiv(p.bands);
  p.by_channels = FastDiv(p.channels);
  return p;
}

template <class T, int kK>
void launch(const Conv& conv, Stream stream) {
  const Gather p = gather_of(conv);
  const int bytes = kWarps * ((p.band_rows + kK) * p.width * 2 + BandKernel<T, kK>::kBytes);
  start(bands_gather_kernel<T, kK>, (p.units + kWarps - 1) / kWarps, kWarps * 32, bytes, stream, conv, p,
        conv.y.data, conv.w.data, conv.x.data);
}

}  // namespace

void depthwise_bands_grad_input(const Conv& conv, Stream stream) {
  with_half(conv.x.dtype, [&](auto type) {
    with_one_of<5, 7>(conv.axes[2].kernel, [&](auto taps) { launch<decltype(type), taps()>(conv, stream); });
  });
}

}  // namespace retrograd::kernels::cuda
