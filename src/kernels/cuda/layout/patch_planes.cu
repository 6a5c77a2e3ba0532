// SPDX-License-Identifier: Apache-2.0
// planes[n, c, tap, p] = x[n, c, place(p, tap)]
//
// A thread writes 4 bytes of up to 64 planes, neighbouring lanes neighbouring ones: where its places lie in x
// it finds out once. What lanes read of a tap lies side by side, and every tap but the first finds it in L1.
// Bytes: the planes once, x about once.
#include "kernels/cuda/counts.h"
#include "kernels/cuda/layout/patch_columns.h"
#include "kernels/cuda/layout/source.cuh"

namespace retrograd::kernels::cuda {
namespace {

using patches::Column;
using patches::Patches;

constexpr int kThreads = 256;
constexpr int kColumns = 64, kFewestColumns = 8;  // of a block
constexpr int64_t kEnoughBlocks = 528;            // with fewer, blocks take fewer columns

// by_words: of an image, 4 bytes of places each.
template <class S, class E>
__global__ void __launch_bounds__(kThreads)
    planes_kernel(const __grid_constant__ Patches p, FastDiv by_words, int of_block, uint32_t* target) {
  constexpr int kOfWord = 4 / sizeof(E);
  __shared__ Column columns[kColumns];
  const int column0 = static_cast<int>(blockIdx.y) * of_block, count = min(of_block, p.columns - column0);
  const int64_t group = blockIdx.z;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
    columns[i] = patches::column_of(p, group, column0 + i);
  __syncthreads();
  const uint32_t word = blockIdx.x * kThreads + threadIdx.x;
  if (word >= p.places / kOfWord) return;
  uint32_t in_image = word;
  const int64_t image = by_words.split(in_image);
  const int64_t pitch = by_words.divisor;
  target += ((image * p.groups + group) * p.columns + column0) * pitch + in_image;
  const patches::Place first(p, word * kOfWord), last(p, word * kOfWord + kOfWord - 1);
#pragma unroll 4
  for (int i = 0; i < count; ++i) {
    const Column c = columns[i];
    __align__(4) E values[kOfWord];
#pragma unroll
    for (int e = 0; e < kOfWord; ++e) {
      const patches::Place& from = e == 0 ? first : last;
      values[e] = from_float<E>(from.reaches(p, c) ? read<S>(p.x, from.at + c.offset) : 0.0f);
    }
    target[i * pitch] = *reinterpret_cast<const uint32_t*>(values);
  }
}

}  // namespace

void make_patch_planes(const Conv& conv, RowType type, void* target, Stream stream) {
  const Patches p = patches::patches_of(conv, type);
  const int64_t of_word = 4 / static_cast<int64_t>(row_element_bytes(type)), words = p.places / of_word;
  const FastDiv by_words(conv.axes[0].y * conv.axes[1].y * conv.axes[2].y / of_word);
  const int64_t across = (words + kThreads - 1) / kThreads;
  int of_block = kColumns;
  while (of_block > kFewestColumns && across * ceil_of(p.columns, of_block) * p.groups < kEnoughBlocks)
    of_block /= 2;
  with_types(conv.x.dtype, type, [&](auto source, auto row) {
    start(planes_kernel<decltype(source), decltype(row)>, {across, ceil_of(p.columns, of_block), p.groups},
          kThreads, 0, stream, p, by_words, of_block, target);
  });
}

}  // namespace retrograd::kernels::cuda
