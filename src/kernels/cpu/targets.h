// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels use: the best one that the machine has and the limit allows, chosen once
// for all of them.
//
// A kernel file exports its functions and calls the chosen ones:
//
//   RG_EXPORT(RG_WIDEST, tile_product)
//   void tile_product(const TileProduct& tile) { chosen_tile_product()(tile); }
//
// HWY_DYNAMIC_DISPATCH is not used: it shares one choice with every other library of the process that uses
// Highway, and executes CPUID, which traps in virtual machines, at every call until somebody has made that
// choice.
#pragma once

#include <iterator>
#include <string_view>

namespace hwy {
struct ChosenTarget;
}

namespace retrograd::kernels::cpu {

// The most that may be used: "amx_fp16" (with tiles of FP16 and BF16), "amx_bf16" (with tiles of BF16),
// "avx512_bf16" (with products of BF16), "avx512", "avx2", "sse4", "neon", "baseline" (what the library was
// compiled for), or "" for no limit. False for any other name. Names of another architecture are no limit.
// Without effect once a kernel was chosen: all of them agree on the width of a vector.
bool limit_targets(std::string_view isa);

// Whether the limit leaves products of BF16 in: never, where they are as fast as those of FP32, or wherever
// the machine has them, which only "avx512_bf16" asks for.
enum class Bf16Use : unsigned char { kNever, kWhereFast, kAlways };
Bf16Use bf16_use();
// Whether it leaves the tile registers of AMX in, and those for FP16.
bool tiles_allowed(bool of_f16);

// Whether bits of results are to be the same on every machine: vectors are eight floats then, those of AVX2
// or those of eight_lanes.h. Without effect once a kernel was chosen.
void make_bits_portable();
bool has_eight_lanes();

// What is used, as Highway calls it: "AVX3", "AVX2", "SCALAR"; or "EIGHT_LANES".
const char* target_name();

const hwy::ChosenTarget& chosen_target();
// The same without the limit that portable bits are.
const hwy::ChosenTarget& widest_target();

}  // namespace retrograd::kernels::cpu

// The function behind `name`, which the same file has exported, of an instruction set. Highway's table has
// one entry where it was told to compile for one target only.
#define RG_OF_TARGET(name, target) \
  (HWY_DISPATCH_TABLE(name)[std::size(HWY_DISPATCH_TABLE(name)) == 1 ? 0 : (target).GetIndex()])
#define RG_CHOSEN_TARGET(name) RG_OF_TARGET(name, retrograd::kernels::cpu::chosen_target())
#ifdef RETROGRAD_ONE_TARGET  // all_targets.h compiles for nothing else
#define RG_UNLESS_EIGHT_LANES(name, target) RG_OF_TARGET(name, target)
#else
#define RG_UNLESS_EIGHT_LANES(name, target) \
  (retrograd::kernels::cpu::has_eight_lanes() ? &RG_EIGHT_LANES_NAMESPACE::name : RG_OF_TARGET(name, target))
#endif
// The same of a file that all_targets.h has compiled, too, for vectors of eight_lanes.h.
#define RG_CHOSEN(name) RG_UNLESS_EIGHT_LANES(name, retrograd::kernels::cpu::chosen_target())
// And for kernels that add the terms of each result in an order that vectors have no part in, or add nothing.
#define RG_WIDEST(name) RG_UNLESS_EIGHT_LANES(name, retrograd::kernels::cpu::widest_target())
// chosen_name(): the function behind `name`, by one of the above, looked up once.
#define RG_EXPORT(choose, name)              \
  HWY_EXPORT(name);                          \
  static auto chosen_##name() {              \
    static const auto chosen = choose(name); \
    return chosen;                           \
  }
