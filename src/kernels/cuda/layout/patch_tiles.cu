// SPDX-License-Identifier: Apache-2.0
// rows[n, p, c, tap] = x[n, c, place(p, tap)], pixels of x side by side; and the weights that go with them,
// weights[o, c, tap] = w[o, c, tap]
//
// A block makes 64 rows, 64 words of each. A warp takes a word at a time, its lanes neighbouring pixels: what
// they read of a tap lies side by side, and every tap but the first finds it in L1. The words go through
// shared memory, from where lanes write neighbouring ones of a row. Bytes: the rows once, x about once.
#include "base/checked.h"
#include "kernels/cuda/layout/patch_columns.h"
#include "kernels/cuda/layout/source.cuh"

namespace retrograd::kernels::cuda {
namespace {

using patches::Column;
using patches::Patches;

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kPlaces = 64, kWords = 64;  // of a block

template <class S, class E>
__device__ uint32_t read_word(const Patches& p, const patches::Place& from, bool there,
                              const Column* columns) {
  constexpr int kOfWord = 4 / sizeof(E);
  __align__(4) E values[kOfWord];
#pragma unroll
  for (int e = 0; e < kOfWord; ++e) {
    const Column c = columns[e];
    values[e] = from_float<E>(there && from.reaches(p, c) ? read<S>(p.x, from.at + c.offset) : 0.0f);
  }
  return *reinterpret_cast<const uint32_t*>(values);
}

// lanes: that write a row.
template <class S, class E>
__global__ void __launch_bounds__(kThreads)
    tiles_kernel(const __grid_constant__ Patches p, int lanes, uint32_t* target) {
  constexpr int kOfWord = 4 / sizeof(E);
  __shared__ Column columns[kWords * kOfWord];
  __shared__ uint32_t tile[kPlaces][kWords + 1];  // lanes of a column meet different banks
  const int word0 = static_cast<int>(blockIdx.y) * kWords, words = min(kWords, p.chunks * 4 - word0);
  const int64_t group = blockIdx.z;
  for (int i = static_cast<int>(threadIdx.x); i < words * kOfWord; i += kThreads)
    columns[i] = patches::column_of(p, group, word0 * kOfWord + i);
  __syncthreads();

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const uint32_t place0 = blockIdx.x * kPlaces;
  const uint32_t first = place0 + lane, second = first + 32;
  const bool first_there = first < p.places, second_there = second < p.places;
  const patches::Place one(p, first_there ? first : 0), other(p, second_there ? second : 0);
#pragma unroll 2
  for (int word = warp; word < words; word += kWarps) {
    const Column* const of_word = columns + word * kOfWord;
    const uint32_t a = read_word<S, E>(p, one, first_there, of_word),
                   b = read_word<S, E>(p, other, second_there, of_word);
    tile[lane][word] = a;
    tile[lane + 32][word] = b;
  }
  __syncthreads();

  const int64_t pitch = int64_t{p.groups} * p.chunks * 4;
  target += place0 * pitch + group * p.chunks * 4 + word0;
  const int rows = static_cast<int>(min(static_cast<uint32_t>(kPlaces), p.places - place0));
  for (int row = static_cast<int>(threadIdx.x) / lanes; row < rows; row += kThreads / lanes)
    for (int word = static_cast<int>(threadIdx.x) % lanes; word < words; word += lanes)
      target[row * pitch + word] = tile[row][word];
}

struct Weights {
  Tensor source;
  OperandRounding rounding;
  int taps, kh, kw, columns, filled;
  int64_t total;
};

// A thread an element: weights of few channels are few.
template <class E>
__global__ void __launch_bounds__(kThreads) weights_kernel(const __grid_constant__ Weights p, E* target) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= p.total) return;
  const int64_t row = i / p.filled;
  const int column = static_cast<int>(i % p.filled), tap = column % p.taps;
  const int64_t* s = p.source.strides;
  const int64_t at = row * s[0] + column / p.taps * s[1] + tap / (p.kh * p.kw) * s[2] +
                     tap / p.kw % p.kh * s[3] + tap % p.kw * s[4];
  target[i] = from_float<E>(
      column < p.columns ? round_operand(p.rounding, load_any(p.source.dtype, p.source.data, at)) : 0.0f);
}

}  // namespace

void make_patch_tiles(const Conv& conv, RowType type, void* target, Stream stream) {
  const Patches p = patches::patches_of(conv, type);
  const int words = p.chunks * 4;
  int lanes = 4;
  while (lanes < 32 && lanes < words) lanes *= 2;
  with_types(conv.x.dtype, type, [&](auto source, auto row) {
    start(tiles_kernel<decltype(source), decltype(row)>,
          {(int64_t{p.places} + kPlaces - 1) / kPlaces, (words + kWords - 1) / kWords, p.groups}, kThreads, 0,
          stream, p, lanes, target);
  });
}

void make_patch_weights(const Conv& conv, RowType type, void* target, Stream stream) {
  const Axis(&a)[3] = conv.axes;
  Weights p;
  p.source = conv.w;
  p.rounding = conv.rounding;
  p.taps = static_cast<int>(a[0].kernel * a[1].kernel * a[2].kernel);
  p.kh = static_cast<int>(a[1].kernel);
  p.kw = static_cast<int>(a[2].kernel);
  p.columns = static_cast<int>(conv.x_channels * p.taps);
  const int64_t chunk = chunk_elements(type);
  p.filled = static_cast<int>((p.columns + chunk - 1) / chunk * chunk);
  p.total = conv.groups * conv.y_channels * p.filled;
  with_type(dtype_of(type), [&](auto element) {
    start(weights_kernel<decltype(element)>, ceil_div(p.total, kThreads), kThreads, 0, stream, p, target);
  });
}

}  // namespace retrograd::kernels::cuda
