// SPDX-License-Identifier: Apache-2.0
// Boxes in shared memory, and the windows that narrow_tiles_gather.cu has kernels for.
#pragma once

#include "base/host_device.h"
#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Floats from row to row: an odd number of chunks.
RG_HOST_DEVICE constexpr int odd_pitch(int columns) { return ((columns + 3) / 4 | 1) * 4; }

struct Box {
  int channels, rows, columns;
  int pitch, plane;         // floats from row to row, from channel to channel
  int lanes;                // threads that share a row: 8, 16 or 32
  int in_group, group_gap;  // channels after which `group_gap` floats are left out
};

inline int lanes_for(int columns) { return columns <= 8 ? 8 : columns <= 16 ? 16 : 32; }

// One axis. q = iS + r and r + P = S·a + b: tap b + S·j reads y at i + P/S + a − j. With P = S·(P/S) + kPhase
// everything but P/S is known to the compiler. The window begins at i + P/S + kLow.
template <int kTaps, int kStride, int kPhase>
struct GatherReach {
  RG_HOST_DEVICE static constexpr int carry(int r) { return (r + kPhase) / kStride; }
  RG_HOST_DEVICE static constexpr int rest(int r) { return (r + kPhase) % kStride; }
  RG_HOST_DEVICE static constexpr int low() {
    int lowest = 0;
    for (int r = 0; r < kStride; ++r) {
      const int taps = (kTaps - rest(r) + kStride - 1) / kStride;
      if (carry(r) - taps + 1 < lowest) lowest = carry(r) - taps + 1;
    }
    return lowest;
  }
  static constexpr int kLow = low();
  static constexpr int kWindow = carry(kStride - 1) - kLow + 1;
  // The tap with which residue r reads place v of the window; −1: none.
  RG_HOST_DEVICE static constexpr int tap(int r, int v) {
    const int j = carry(r) - kLow - v, t = rest(r) + kStride * j;
    return j >= 0 && t < kTaps ? t : -1;
  }
};

// kHeld: weights of a y channel stay in registers while rows of y go by, each row serving all pieces.
template <int kC_, int kKh_, int kKw_, int kSh_, int kSw_, int kPieces_, bool kHeld_>
struct GatherShape {
  static constexpr int kC = kC_, kKh = kKh_, kKw = kKw_, kSh = kSh_, kSw = kSw_, kPieces = kPieces_;
  static constexpr bool kHeld = kHeld_;
  // Padding is half a kernel where there is a stride; without one its phase is 0 anyway.
  static constexpr int kPhaseH = kSh == 1 ? 0 : kKh / 2 % kSh,
                       kPhaseW = kSw == 1 || kKh == 1 ? 0 : kKw / 2 % kSw;
  using H = GatherReach<kKh, kSh, kPhaseH>;
  using W = GatherReach<kKw, kSw, kPhaseW>;
  static constexpr bool kAlongRows = kKh > 1;                   // how a thread's pieces lie
  static constexpr int kChunks = (4 + W::kWindow - 1 + 3) / 4;  // of a row of y that a piece reads
  static constexpr int kLine = (kKw * kC + 3) / 4;              // chunks of a row of weights
  static constexpr int kWeights = (kKh * kLine | 1) * 4;        // floats of a y channel
};

// Calls function(S{}) with the first shape that fits; false: there is none.
template <class S, class... More, class Function>
bool with_gather_shape_of(const Conv& conv, Function&& function) {
  const Axis &h = conv.axes[1], &w = conv.axes[2];
  if (h.kernel == S::kKh && w.kernel == S::kKw && (h.y == 1 || h.stride == S::kSh) && w.stride == S::kSw &&
      h.pad % S::kSh == S::kPhaseH && w.pad % S::kSw == S::kPhaseW && conv.x_channels % S::kC == 0 &&
      (S::kPieces <= 2 || h.x > 16)) {
    function(S{});
    return true;
  }
  if constexpr (sizeof...(More) > 0) return with_gather_shape_of<More...>(conv, function);
  return false;
}
template <class Function>
bool with_gather_shape(const Conv& conv, Function&& function) {
  return with_gather_shape_of<GatherShape<4, 3, 3, 1, 1, 4, true>,
                              GatherShape<4, 3, 3, 1, 1, 2, true>,    // narrow groups
                              GatherShape<4, 3, 3, 2, 2, 1, false>,   //
                              GatherShape<3, 7, 7, 2, 2, 1, false>,   // stems
                              GatherShape<3, 5, 5, 1, 1, 2, false>,   // small networks
                              GatherShape<1, 1, 10, 1, 5, 2, false>>  // waveforms
      (conv, function);
}

}  // namespace retrograd::kernels::cuda
