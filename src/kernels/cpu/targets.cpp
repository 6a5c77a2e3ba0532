// SPDX-License-Identifier: Apache-2.0
// The limit, and the choice made from it at first use.
#include "kernels/cpu/targets.h"

#include <atomic>

#include "hwy/highway.h"

namespace retrograd::kernels::cpu {
namespace {

constexpr int64_t kEverything = ~int64_t{0};

struct Limit {
  std::string_view name;
  int64_t targets;
  Bf16Use bf16 = Bf16Use::kNever;
  bool tiles = false, f16_tiles = false;
};
// Highway gives better targets lower bits: `-target` has the bits of a target and of all that are worse.
constexpr Limit kLimits[] = {
    {"", kEverything, Bf16Use::kWhereFast, true, true},
    {"amx_fp16", kEverything, Bf16Use::kWhereFast, true, true},
    {"amx_bf16", kEverything, Bf16Use::kWhereFast, true},
    {"avx512_bf16", kEverything, Bf16Use::kAlways},
    {"avx512", kEverything},
#if HWY_ARCH_X86
    {"avx2", -HWY_AVX2},
    {"sse4", -HWY_SSE4},
#else
    {"avx2", kEverything},
    {"sse4", kEverything},
#endif
    {"neon", kEverything},  // all that ARM has here: src/CMakeLists.txt leaves SVE out
    {"baseline", HWY_STATIC_TARGET},
};

std::atomic<int64_t> allowed{kEverything};
std::atomic<Bf16Use> bf16{Bf16Use::kWhereFast};
std::atomic<bool> tiles{true}, f16_tiles{true};
std::atomic<bool> portable{false};

// The target whose vectors are eight_lanes.h's, if the architecture has it.
#if HWY_ARCH_X86
constexpr int64_t kPortableTarget = HWY_AVX2;
#else
constexpr int64_t kPortableTarget = 0;
#endif
#ifdef RETROGRAD_ONE_TARGET
constexpr bool kCompilesEightLanes = false;
#else
constexpr bool kCompilesEightLanes = true;
#endif

struct Choice {
  Choice() : targets(hwy::SupportedTargets() & allowed & HWY_TARGETS) {
    if (targets == 0) targets = HWY_STATIC_TARGET;
    widest.Update(targets);
    const bool has_portable = (targets & kPortableTarget) != 0;
    eight_lanes = kCompilesEightLanes && portable && !has_portable;
    if (portable && has_portable) targets = kPortableTarget;
    chosen.Update(targets);
  }
  int64_t targets;
  bool eight_lanes;
  hwy::ChosenTarget chosen, widest;
};
const Choice& choice() {
  static const Choice instance;
  return instance;
}

}  // namespace

bool limit_targets(std::string_view isa) {
  for (const Limit& limit : kLimits) {
    if (limit.name != isa) continue;
    allowed = limit.targets;
    bf16 = limit.bf16;
    tiles = limit.tiles;
    f16_tiles = limit.f16_tiles;
    return true;
  }
  return false;
}

Bf16Use bf16_use() { return portable ? Bf16Use::kNever : bf16.load(); }
bool tiles_allowed(bool of_f16) { return (of_f16 ? f16_tiles : tiles) && !portable; }

void make_bits_portable() { portable = true; }
bool has_eight_lanes() { return choice().eight_lanes; }

const char* target_name() {
  return choice().eight_lanes ? "EIGHT_LANES" : hwy::TargetName(choice().targets & -choice().targets);
}

const hwy::ChosenTarget& chosen_target() { return choice().chosen; }
const hwy::ChosenTarget& widest_target() { return choice().widest; }

}  // namespace retrograd::kernels::cpu
