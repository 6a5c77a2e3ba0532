// SPDX-License-Identifier: Apache-2.0
// What a thread does for an item (depthwise_last_plan.h), in plain C++: kernels run it on the GPU, tests on
// the CPU.
#pragma once

#include <cmath>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"

namespace retrograd::kernels::cuda {

struct LastThread {
  int lane, strip, image;
};
RG_DEVICE inline LastThread last_thread(const LastPlan& p, int number) {
  const int behind = number / p.lanes;
  return {number % p.lanes, behind % p.strips, behind / p.strips};
}

// Where an item begins: positions in the tensors, which may lie outside.
struct LastPlace {
  int image, steps;
  int source_h, source_w, result_h, result_w;
};
RG_DEVICE inline LastPlace last_place(const LastPlan& p, uint32_t item) {
  uint32_t segment = item;
  uint32_t band = p.segments.split(segment);
  uint32_t of_w = p.bands.split(band);
  uint32_t of_h = p.residues_w.split(of_w);
  const uint32_t group = p.residues_h.split(of_h);
  const int row = static_cast<int>(band) * p.steps, column = static_cast<int>(segment) * p.strips;
  const int h = static_cast<int>(of_h), w = static_cast<int>(of_w), rest = p.tiles - row;
  return {static_cast<int>(group) * p.group,
          rest < p.steps ? rest : p.steps,
          p.h.source_at + h + p.h.step * row * p.tile.down,
          p.w.source_at + w + p.w.step * column * p.tile.across,
          p.h.result_at + h + p.h.step * row * p.tile.rows,
          p.w.result_at + w + p.w.step * column * p.tile.columns};
}

// A thread's share of copies: a chunk of the channels of every `across`-th place.
struct LastChunks {
  int first, across;
  int channel, byte;  // from the tensor's channel 0 and from where a place begins
  bool any;
};
RG_DEVICE inline LastChunks last_chunks(const LastPlan& p, int number, int threads, int chunk_bytes,
                                        int element_bytes, int first_channel) {
  const int chunks = p.place_bytes / chunk_bytes, byte = number % chunks * chunk_bytes;
  const int channel = first_channel + byte / element_bytes, across = threads / chunks,
            first = number / chunks;
  return {first, across, channel, byte, first < across && channel < p.channels};
}

// An operand, and where the item's rows of it begin.
struct LastOperand {
  int height, width;
  int h, w, image;
};

// kRows rows from row `first` of the item on go to the ring's rows from `slot` on. copy(byte, element, live):
// a chunk; zeros unless live.
template <int kRows, class Copy>
RG_DEVICE void stage_rows(const LastPlan& p, const LastRows& rows, const LastOperand& from,
                          const LastChunks& chunks, int first, int slot, Copy&& copy) {
  if (!chunks.any) return;
  for (int column = chunks.first; column < p.group * rows.wide; column += chunks.across) {
    auto place = static_cast<uint32_t>(column);
    const auto image = static_cast<int>(rows.by_image.split(place));
    const auto at = static_cast<int>(place);
    const int w = from.w + p.w.step * at,
              target = image * rows.image_bytes + chunks.byte + (at + at / rows.unit * p.gap) * p.place_bytes;
    const bool inside = is_inside(w, from.width) && from.image + image < p.images;
    // 32 bits hold the number of every element that there is; of others it is not used.
    const uint32_t row_elements = static_cast<uint32_t>(from.width) * static_cast<uint32_t>(p.channels);
    const uint32_t element = static_cast<uint32_t>(from.image + image) * from.height * row_elements +
                             static_cast<uint32_t>(w) * p.channels + chunks.channel;
    RG_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int h = from.h + p.h.step * (first + r);
      const int ring_row = slot + r < rows.ring ? slot + r : slot + r - rows.ring;
      const bool live = inside && is_inside(h, from.height);
      copy(target + ring_row * rows.row_bytes, live ? element + static_cast<uint32_t>(h) * row_elements : 0u,
           live);
    }
  }
}

RG_DEVICE inline int next_slot(const LastRows& rows, int slot, int count) {
  return slot + count < rows.ring ? slot + count : slot + count - rows.ring;
}

// Byte of a thread's first place in a row.
RG_DEVICE inline int first_byte(const LastPlan& p, const LastRows& rows, const LastThread& thread,
                                int lane_bytes) {
  return thread.image * rows.image_bytes + thread.strip * (rows.unit + p.gap) * p.place_bytes +
         thread.lane * lane_bytes;
}

// Calls use(r, values) for every row that a tile reads. load(byte, values): a thread's channels of a place.
template <int kRows, int kColumns, int kUnit, int kVector, class Load, class Use>
RG_DEVICE void read_tile(const LastPlan& p, const LastRows& rows, int byte, int slot, Load&& load,
                         Use&& use) {
  RG_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const int ring_row = slot + r < rows.ring ? slot + r : slot + r - rows.ring;
    const int row = byte + ring_row * rows.row_bytes;
    float values[kColumns][kVector];
    RG_UNROLL
    for (int c = 0; c < kColumns; ++c) load(row + (c + c / kUnit * p.gap) * p.place_bytes, values[c]);
    use(r, values);
  }
}

// sums += the taps of a tile. In this order neighbouring products go to different sums.
template <int kTaps, LastForm kForm, int kBytes, int kVector, int kRows, int kColumns, class Load>
RG_DEVICE void gather_tile(const LastPlan& p, int byte, int slot, Load&& load,
                           const float (&w)[kTaps * kTaps][kVector],
                           float (&sums)[kRows][kColumns][kVector]) {
  constexpr LastTile kTile = last_tile(kTaps, kForm, kBytes);
  const auto add = [&](int r, const auto& row) {
    RG_UNROLL
    for (int i = 0; i < kRows * kTile.source_columns * kColumns; ++i) {
      const int a = i / (kTile.source_columns * kColumns), c = i / kColumns % kTile.source_columns,
                b = i % kColumns;
      const int kh = last_tap(kTaps, kForm, a, r), kw = last_tap(kTaps, kForm, b, c);
      if (kh < 0 || kh >= kTaps || kw < 0 || kw >= kTaps) continue;
      RG_UNROLL
      for (int v = 0; v < kVector; ++v) sums[a][b][v] = fmaf(row[c][v], w[kh * kTaps + kw][v], sums[a][b][v]);
    }
  };
  read_tile<kTile.source_rows, kTile.source_columns, kTile.across, kVector>(p, p.source, byte, slot, load,
                                                                            add);
}

// sums += the products of a tile of results with what they read.
template <int kTaps, LastForm kForm, int kBytes, int kVector, class Load>
RG_DEVICE void weight_tile(const LastPlan& p, int source_byte, int source_slot, int result_byte,
                           int result_slot, Load&& load, float (&sums)[kTaps * kTaps][kVector]) {
  static_assert(kForm != LastForm::kSpread, "y is what is strided");
  constexpr LastTile kTile = last_tile(kTaps, kForm, kBytes);
  constexpr int kStride = kForm == LastForm::kStrided ? 2 : 1;
  float results[kTile.rows][kTile.columns][kVector];
  const auto keep = [&](int r, const auto& row) {
    RG_UNROLL
    for (int i = 0; i < kTile.columns * kVector; ++i)
      results[r][i / kVector][i % kVector] = row[i / kVector][i % kVector];
  };
  const auto add = [&](int r, const auto& row) {
    RG_UNROLL
    for (int i = 0; i < kTile.rows * kTile.columns * kTaps; ++i) {
      const int a = i / (kTile.columns * kTaps), b = i / kTaps % kTile.columns, kw = i % kTaps;
      const int kh = last_tap(kTaps, kForm, a, r);
      if (kh < 0 || kh >= kTaps) continue;
      RG_UNROLL
      for (int v = 0; v < kVector; ++v)
        sums[kh * kTaps + kw][v] = fmaf(row[b * kStride + kw][v], results[a][b][v], sums[kh * kTaps + kw][v]);
    }
  };
  read_tile<kTile.rows, kTile.columns, kTile.columns, kVector>(p, p.results, result_byte, result_slot, load,
                                                               keep);
  read_tile<kTile.source_rows, kTile.source_columns, kTile.across, kVector>(p, p.source, source_byte,
                                                                            source_slot, load, add);
}

// Calls store(element, a, b) for the results of a thread's tile that there are; element: of `channel`.
template <int kRows, int kColumns, class Store>
RG_DEVICE void each_result(const LastPlan& p, const LastPlace& at, const LastThread& thread, int step,
                           int channel, Store&& store) {
  const int image = at.image + thread.image;
  const int h0 = at.result_h + p.h.step * step * kRows, w0 = at.result_w + p.w.step * thread.strip * kColumns;
  if (image >= p.images) return;
  // In 32 bits, as in stage_rows.
  const uint32_t column = static_cast<uint32_t>(p.w.step) * static_cast<uint32_t>(p.channels);
  const uint32_t row_elements = static_cast<uint32_t>(p.w.result) * static_cast<uint32_t>(p.channels);
  const uint32_t first = (static_cast<uint32_t>(image) * p.h.result + h0) * row_elements +
                         static_cast<uint32_t>(w0) * p.channels + channel;
  RG_UNROLL
  for (int a = 0; a < kRows; ++a) {
    if (!is_inside(h0 + p.h.step * a, p.h.result)) continue;
    const uint32_t row = first + static_cast<uint32_t>(p.h.step * a) * row_elements;
    RG_UNROLL
    for (int b = 0; b < kColumns; ++b)
      if (is_inside(w0 + p.w.step * b, p.w.result)) store(row + static_cast<uint32_t>(b) * column, a, b);
  }
}

}  // namespace retrograd::kernels::cuda
