// SPDX-License-Identifier: Apache-2.0
// Hopper's barriers in shared memory and its engine that copies boxes of tensors (TMA). Addresses of shared
// memory are 32-bit numbers. Only for code compiled for sm_90a. Clusters of blocks that read for each other
// (multicast) were tried and took 1.2 to 3 times as long.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace retrograd::kernels::cuda::hopper {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// ---- warpgroups

// 128 threads that share a number from 1 to 15.
__device__ inline void sync_group(int number) { asm volatile("bar.sync %0, 128;" ::"r"(number) : "memory"); }
// The same, and whether it holds for any of them.
__device__ inline bool any_of_group(int number, bool value) {
  uint32_t any;
  asm volatile(
      "{\n.reg .pred mine, all;\n"
      "setp.ne.u32 mine, %2, 0;\n"
      "bar.red.or.pred all, %1, 128, mine;\n"
      "selp.u32 %0, 1, 0, all;\n}"
      : "=r"(any)
      : "r"(number), "r"(static_cast<uint32_t>(value))
      : "memory");
  return any != 0;
}

// Registers a thread has from here on, a multiple of eight; all four warps of a warpgroup, in one branch of
// the kernel each. Needs a bound on the registers at entry (__launch_bounds__ with the blocks a
// multiprocessor).
template <int kCount>
__device__ inline void give_registers_back() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// ---- barriers: 8 bytes of shared memory each

__device__ inline void init_barrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// By the thread that initialised them, before the others are let on.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Those of a ring, by one thread: so many arrivals make a stage full, or empty again.
template <int kStages>
__device__ inline void init_ring(uint32_t full, uint32_t empty, uint32_t filling, uint32_t emptying) {
  for (int i = 0; i < kStages; ++i) {
    init_barrier(full + 8 * i, filling);
    init_barrier(empty + 8 * i, emptying);
  }
  publish_barriers();
}
__device__ inline void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// One arrival, and so many bytes of copies that the phase waits for.
__device__ inline void arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Until the phase of that parity is over. A new barrier's first phase has parity 0; waiting for parity 1 on
// it returns at once.
__device__ inline void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni over;\n"
      "bra.uni again;\n"
      "over:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// The place in a ring of kStages, and the parity of this round.
template <int kStages>
struct Ring {
  uint32_t stage = 0, parity = 0;
  __device__ void next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// ---- copies of boxes; one thread asks for one

__device__ inline void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ inline void load_box(uint32_t target, const CUtensorMap* map, uint32_t barrier, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], "
      "[%2];" ::"r"(target),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1)
      : "memory");
}
__device__ inline void load_box(uint32_t target, const CUtensorMap* map, uint32_t barrier, int c0, int c1,
                                int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5}], [%2];" ::"r"(target),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
__device__ inline void load_box(uint32_t target, const CUtensorMap* map, uint32_t barrier, int c0, int c1,
                                int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5, %6}], [%2];" ::"r"(target),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
// Rows of channels of consecutive places, from c, w, h, n on; the offsets lead from a place to a tap's.
__device__ inline void load_places(uint32_t target, const CUtensorMap* map, uint32_t barrier, int c, int w,
                                   int h, int n, uint16_t to_w, uint16_t to_h) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, "
      "%5, %6}], [%2], {%7, %8};" ::"r"(target),
      "l"(map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(n), "h"(to_w), "h"(to_h)
      : "memory");
}
__device__ inline void load_places(uint32_t target, const CUtensorMap* map, uint32_t barrier, int c, int w,
                                   int h, int d, int n, uint16_t to_w, uint16_t to_h, uint16_t to_d) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, "
      "%5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(target),
      "l"(map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(d), "r"(n), "h"(to_w), "h"(to_h), "h"(to_d)
      : "memory");
}

}  // namespace retrograd::kernels::cuda::hopper
