// SPDX-License-Identifier: Apache-2.0
// What products of FP32 rows have in common on Hopper: a block is one warpgroup that brings operands and two
// or three that multiply, with a ring of stages between them.
//
// A stage is 32 terms: the tile of A as it was, FP32, and of B two panels of kN rows of 128 bytes
// (wgmma.cuh), the nearest TF32 numbers and the rests (tile_mma.cuh: FP32 as three TF32 products). A is
// halved in registers on its way to the tensor cores, B by those who bring it: memory and L2 see every
// operand once. Products with a rest come first, while the sum of the stage is still small: tensor cores cut
// off four sums a stage. Where one product is enough (TF32), operands are such numbers already and there is
// one panel.
#pragma once

#include "kernels/cuda/dense/hopper.cuh"
#include "kernels/cuda/dense/tile_mma.cuh"
#include "kernels/cuda/sm90a/tf32_panels.cuh"

namespace retrograd::kernels::cuda::f32 {

constexpr int kTerms = 32;  // of a stage

// Tiles of kM x kN: kGroups warpgroups of kDown times 64 rows. A comes as boxes (TMA); B does, too, or not.
template <int kProducts_, int kDown_, int kN_, int kGroups_, int kStages_, bool kPanelsOfBoxes_>
struct Cut {
  static constexpr int kProducts = kProducts_, kDown = kDown_, kN = kN_, kGroups = kGroups_,
                       kStages = kStages_, kABytes = kDown * kGroups * 64 * 128;
  static constexpr bool kPanelsOfBoxes = kPanelsOfBoxes_;
  static constexpr int kM = 64 * kDown * kGroups, kThreads = 128 * (1 + kGroups);
  static constexpr int kPanelBytes = kN * 128, kStageBytes = kABytes + (kProducts == 3 ? 2 : 1) * kPanelBytes;
  static constexpr int kBytes = kStages * kStageBytes + 1024;  // the first stage begins at a multiple of 1024
  static constexpr int kAhead = kStages == 3 ? 2 : kStages - 2;  // steps that copies are ahead
  // Registers: of 65536, with 168 or 128 a thread at the start.
  static constexpr int kMultiplying = kGroups == 3 ? 144
                                      : kN > 128   ? 224
                                                   : 216,
                       kBringing = kGroups == 3 ? 80
                                   : kN > 128   ? 56
                                                : 72;
  static constexpr int kBoxBytes = kABytes + (kPanelsOfBoxes ? kPanelBytes : 0);
  static_assert(kProducts == 1 || kProducts == 3);
};

template <class C>
using Position = hopper::Ring<C::kStages>;

// Three barriers a stage: boxes have come, panels are made, all is multiplied.
template <class C>
struct Barriers {
  uint32_t come, full, empty;
  __device__ explicit Barriers(uint64_t* barriers)
      : come(shared_address(barriers)),
        full(shared_address(barriers + C::kStages)),
        empty(shared_address(barriers + 2 * C::kStages)) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < C::kStages; ++i) {
        hopper::init_barrier(come + i * 8, 1);
        hopper::init_barrier(full + i * 8, 128);
        hopper::init_barrier(empty + i * 8, 4 * C::kGroups);
      }
      hopper::publish_barriers();
    }
    __syncthreads();
  }
  __device__ void await_boxes(const Position<C>& at) const { hopper::wait(come + at.stage * 8, at.parity); }
  __device__ void await_full(const Position<C>& at) const { hopper::wait(full + at.stage * 8, at.parity); }
  // Those who bring wait for the round before.
  __device__ void await_empty(const Position<C>& at) const {
    hopper::wait(empty + at.stage * 8, at.parity ^ 1);
  }
  __device__ void fill(const Position<C>& at) const { hopper::arrive(full + at.stage * 8); }
  __device__ void free(const Position<C>& at) const {
    if (threadIdx.x % 32 == 0) hopper::arrive(empty + at.stage * 8);
  }
};

// Fragments::load(stage, i, j, a): A's of the i-th 64 rows, the j-th eight terms.
template <class C, class Fragments>
struct Multiplier {
  using Factors = uint32_t[C::kDown][4][4];
  using Sums = float[C::kDown][C::kN / 2];
  const Barriers<C>& barriers;
  const Fragments& fragments;
  uint32_t base;
  Position<C> at;

  __device__ Multiplier(const Barriers<C>& b, const Fragments& f, uint32_t stages)
      : barriers(b), fragments(f), base(stages) {}

  __device__ void multiply(Sums& sums, int steps) {
#pragma unroll
    for (int i = 0; i < C::kDown; ++i)
#pragma unroll
      for (int e = 0; e < C::kN / 2; ++e) sums[i][e] = 0;
    if constexpr (C::kProducts == 3)
      multiply_three(sums, steps);
    else
      multiply_once(sums, steps);
  }

 private:
  __device__ void read(const Position<C>& from, Factors& a) const {
    barriers.await_boxes(from);
    barriers.await_full(from);
#pragma unroll
    for (int i = 0; i < C::kDown; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) fragments.load(base + from.stage * C::kStageBytes, i, j, a[i][j]);
  }
  __device__ uint64_t panel(const Position<C>& of) const {
    return hopper::factor(base + of.stage * C::kStageBytes + C::kABytes);
  }

  __device__ void multiply_three(Sums& sums, int steps) {
    Sums parts;
    for (int step = 0; step < steps; ++step) {
      Factors a, near, rest;
      read(at, a);
#pragma unroll
      for (int i = 0; i < C::kDown; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) halve(a[i][j], near[i][j], rest[i][j]);
      const uint64_t b = panel(at), b_rest = b + (C::kPanelBytes >> 4);
#pragma unroll
      for (int i = 0; i < C::kDown; ++i) hopper::hold(parts[i]);
      hopper::fence_sums();
#pragma unroll
      for (int i = 0; i < C::kDown; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) hopper::multiply_panel<C::kN>(parts[i], rest[i][j], b + j * 2, j > 0);
#pragma unroll
        for (int j = 0; j < 4; ++j) hopper::multiply_panel<C::kN>(parts[i], near[i][j], b_rest + j * 2, true);
#pragma unroll
        for (int j = 0; j < 4; ++j) hopper::multiply_panel<C::kN>(parts[i], near[i][j], b + j * 2, true);
      }
      hopper::close_products();
      hopper::wait_for_products<0>();
      barriers.free(at);
      at.next();
#pragma unroll
      for (int i = 0; i < C::kDown; ++i) {
        hopper::hold(parts[i]);
#pragma unroll
        for (int e = 0; e < C::kN / 2; ++e) sums[i][e] += parts[i][e];
      }
    }
  }

  // While a stage is multiplied, the factors of the next are read into the registers of the one before.
  __device__ void multiply_once(Sums& sums, int steps) {
    Factors even, odd;
    read(at, even);
    Position<C> last = at;
#pragma unroll
    for (int i = 0; i < C::kDown; ++i) hopper::hold(sums[i]);
    const auto step_with = [&](int step, Factors& a, Factors& next) {
      const uint64_t b = panel(at);
      hopper::fence_sums();
#pragma unroll
      for (int i = 0; i < C::kDown; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) hopper::multiply_panel<C::kN>(sums[i], a[i][j], b + j * 2, true);
      hopper::close_products();
      hopper::wait_for_products<1>();
      if (step > 0) barriers.free(last);
      last = at;
      at.next();
      if (step + 1 < steps) read(at, next);
    };
    for (int step = 0; step < steps; step += 2) {
      step_with(step, even, odd);
      if (step + 1 < steps) step_with(step + 1, odd, even);
    }
    hopper::wait_for_products<0>();
    barriers.free(last);
#pragma unroll
    for (int i = 0; i < C::kDown; ++i) hopper::hold(sums[i]);
  }
};

__device__ inline void store_words(uint32_t target, const uint32_t (&value)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(target), "r"(value[0]), "r"(value[1]),
               "r"(value[2]), "r"(value[3])
               : "memory");
}
// Four numbers to the panels; `target` is where the first has them.
template <class C>
__device__ void store_to_panels(uint32_t target, const uint32_t (&value)[4]) {
  if constexpr (C::kProducts == 1) return store_words(target, value);
  uint32_t near[4], rest[4];
  halve(value, near, rest);
  store_words(target, near);
  store_words(target + C::kPanelBytes, rest);
}

// operands.ask(stage, barrier): the first thread asks for the boxes of a step, C::kBoxBytes in all, the
// others may start copies of their own. operands.make_panels(panels): of what has come. Each is called once a
// step, in order.
template <class C, class Operands>
__device__ void bring(int64_t steps, const Barriers<C>& barriers, uint32_t base, Operands& operands) {
  Position<C> asked, made;
  const auto ask = [&](int64_t step) {
    if (step < steps) {
      if (step >= C::kStages) barriers.await_empty(asked);
      const uint32_t stage = base + asked.stage * C::kStageBytes, barrier = barriers.come + asked.stage * 8;
      if (threadIdx.x == 0) hopper::arrive_expecting(barrier, C::kBoxBytes);
      operands.ask(stage, barrier);
      asked.next();
    }
    close_copies();
  };
#pragma unroll
  for (int i = 0; i < C::kAhead; ++i) ask(i);
  for (int64_t step = 0; step < steps; ++step) {
    wait_for_copies<C::kAhead - 1>();
    if (C::kPanelsOfBoxes) barriers.await_boxes(made);
    operands.make_panels(base + made.stage * C::kStageBytes + C::kABytes);
    hopper::show_to_products();
    barriers.fill(made);
    made.next();
    ask(step + C::kAhead);
  }
}

}  // namespace retrograd::kernels::cuda::f32
