// SPDX-License-Identifier: Apache-2.0
// How the depthwise kernels on channels-last tensors cut their work.
//
// A block takes some channels of a segment of columns and walks down a band of rows, tile by tile: a thread
// makes kRows x kColumns results of one channel or two from rows that lie in shared memory, and the rows of
// the next tiles are on their way meanwhile. Three forms of the window make all passes:
//
//   kDense     r[a] = Σ_k s[a + k]·w[k]      stride 1; grad_input with the kernel turned round
//   kStrided   r[a] = Σ_k s[2a + k]·w[k]     forward and grad_weight, stride 2
//   kSpread    r[b] = Σ_k s[(b − k)/2]·w[k]  grad_input, stride 2: taps for which the division leaves nothing
//
// Indices along an axis count from where the padding makes them begin. With dilation D, results D apart and
// what they read are a convolution without dilation: one for each residue. Numbers of parts are the order of
// sums: functions of the problem and the shared memory of a block alone.
#pragma once

#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

enum class LastForm : unsigned char { kDense, kStrided, kSpread };

// Of a thread. taps: 3, 5 or 7 along both axes; smaller kernels leave some unused.
struct LastTile {
  int taps, vector;                 // vector: channels
  int rows, columns;                // results
  int down, across;                 // places of the source from a tile to the next
  int source_rows, source_columns;  // that a tile reads
};
RG_HOST_DEVICE constexpr LastTile last_tile(int taps, LastForm form, int element_bytes) {
  const int vector = taps == 7 || element_bytes == 4 ? 1 : 2;  // whose weights leave registers for the rest
  const int columns = taps == 7 && form == LastForm::kDense ? 8 : 4;
  switch (form) {
    case LastForm::kDense:
      return {taps, vector, 4, columns, 4, columns, 4 + taps - 1, columns + taps - 1};
    case LastForm::kStrided:
      return {taps, vector, 2, columns, 4, 2 * columns, 2 + taps, 2 * columns - 2 + taps};
    case LastForm::kSpread:
      break;
  }
  return {taps, vector, 4, columns, 2, columns / 2, 2 + taps / 2, columns / 2 + taps / 2};
}
// The tap with which result b of a tile reads its source place r; not one of the window's: none.
RG_HOST_DEVICE constexpr int last_tap(int taps, LastForm form, int b, int r) {
  if (form == LastForm::kDense) return r - b;
  return form == LastForm::kStrided ? r - 2 * b : b - 2 * r + taps - 1;
}

// Index i is at source_at + residue + step·i of the source, index b at result_at + residue + step·b of the
// results; both may lie outside.
struct LastAxis {
  int source, result, kernel;
  int source_at, result_at, step;
  int residues, count;  // count: results of a residue, at most
};

// Rows of one operand in shared memory: places of an image side by side, images behind each other; every
// `unit` places a gap may keep threads of a warp off each other's banks.
struct LastRows {
  int wide, unit;  // places of an image
  FastDiv by_image;
  int image_bytes, row_bytes;
  int ring;  // rows
};

struct LastPlan {
  LastForm form;
  bool turned, whole;  // the kernel turned round; as many taps as the tiles
  LastTile tile;
  LastAxis h, w;
  int channels, images;
  int lanes, strips, group;  // threads along channels, columns and images
  int channel_blocks;
  int tiles, steps;  // tiles down an image and down a band
  FastDiv segments, bands, residues_w, residues_h;
  uint32_t items;            // an item: a band of a segment of a group of images, one residue
  int place_bytes, gap;      // gap: places
  LastRows source, results;  // results: of grad_weight, which reads them
  int shared;                // bytes
  int64_t blocks;            // that share the items of some channels; of grad_weight: parts

  int threads() const { return lanes * strips * group; }
};

// Steps whose rows are on their way while a tile is made.
inline constexpr int kLastAhead = 2;
inline constexpr int kLastThreads = 128;

enum class LastPass : unsigned char { kForward, kGradInput, kGradWeight };
// Whether windows have a form.
bool has_last_form(const Conv& conv);
// With as many threads as have room in so many bytes of shared memory; `shared` is larger where none have.
LastPlan last_plan(const Conv& conv, LastPass pass, int64_t shared_bytes);
// Bytes that are copied at once, from addresses that are multiples of `alignment`.
int last_chunk(const LastPlan& plan, int element_bytes, int alignment);

// Depthwise convolutions, one channel a group, on dense channels-last tensors of FP32, FP16 or BF16 at any
// address: windows of up to 7x7 taps in two axes, any padding, stride 1 with any dilation or stride 2
// without.
// forward, or grad_input.
void depthwise_last_gather(const Conv& conv, bool forward, const LastPlan& plan, Stream stream);

// The workspace holds a float for each part of each weight.
void depthwise_last_grad_weight(const Conv& conv, const LastPlan& plan, float* workspace, Stream stream);

}  // namespace retrograd::kernels::cuda
