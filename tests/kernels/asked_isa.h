// SPDX-License-Identifier: Apache-2.0
// CMake starts test programs once for each instruction set that RETROGRAD_CPU_ISA names: what one that this
// machine has not prints, and how one that was not obeyed is noticed.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/settings.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "kernels/cpu/targets.h"

namespace retrograd::test {

inline bool machine_has(const std::string& isa) {
#if defined(__x86_64__)
  if (isa == "amx_fp16") return kernels::cpu::machine_has_tiles(kernels::cpu::CellType::kF16);
  if (isa == "amx_bf16") return kernels::cpu::machine_has_tiles(kernels::cpu::CellType::kBf16);
  if (isa == "avx512_bf16") return __builtin_cpu_supports("avx512bf16") != 0;
  if (isa == "avx512")
    return __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (isa == "avx2") return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (isa == "sse4") return __builtin_cpu_supports("sse4.1") != 0;
#elif defined(__aarch64__)
  if (isa == "neon") return true;
#endif
  return isa == "baseline";
}

// For the SetUp() of a test environment, after the limit was set.
inline void expect_asked_isa() {
  const std::string isa = settings().cpu_isa, target = kernels::cpu::target_name();
  if (isa.empty()) return;
  if (!machine_has(isa)) GTEST_SKIP() << "this machine has no " << isa << ", the kernels use " << target;
  const bool tiles = kernels::cpu::has_tiles(kernels::cpu::CellType::kBf16),
             f16_tiles = kernels::cpu::has_tiles(kernels::cpu::CellType::kF16);
  EXPECT_EQ(tiles, isa.starts_with("amx"));
  EXPECT_EQ(f16_tiles, isa == "amx_fp16");
  const bool obeyed = isa.starts_with("amx") ? tiles
                      : isa == "avx512_bf16" ? kernels::cpu::has_bf16_products()
                      : isa == "avx512" ? target.starts_with("AVX3") && !kernels::cpu::has_bf16_products()
                      : isa == "avx2"   ? target == "AVX2"
                      : isa == "sse4"   ? target == "SSE4"
                                        : target == "SCALAR" || target == "EMU128" || target == "NEON";
  EXPECT_TRUE(obeyed) << "RETROGRAD_CPU_ISA is " << isa << ", the kernels use " << target;
}

}  // namespace retrograd::test
