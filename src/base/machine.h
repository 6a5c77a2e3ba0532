// SPDX-License-Identifier: Apache-2.0
// Machine: what planning knows of a processor. A plain value: a device fills it in once, and a table of named
// machines gives it for hardware that is not here. Planning never asks the hardware itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/caches.h"

namespace retrograd {

struct CpuFacts {
  int vector_floats = 4;      // 16, 8, 4, or 1 without vectors
  int vector_registers = 16;  // 32, or 16 on x86 before AVX-512
  bool masked_loads = false;  // which do not touch the lanes that they leave out: AVX2 and AVX-512
  bool bf16_pairs = false;    // multiplies pairs of BF16 as fast as FP32
  bool bf16_tiles = false;    // has AMX's tile registers for BF16
  bool f16_tiles = false;     // and for FP16
  Caches caches;
  int threads = 1;
  // Nominal: costs of one machine are compared with each other only, and tuning/ says what is reached.
  double gflops = 30;   // peak of one thread in FP32
  double copy_gbs = 8;  // copy bandwidth of memory a thread; bytes read and bytes written both count
};
// Two vectors of multiply-adds a cycle at 3 GHz.
constexpr double nominal_gflops(int vector_floats) { return 3 * 2 * 2 * vector_floats; }

struct GpuFacts {
  int architecture = 0;  // 90: compute capability 9.0
  int multiprocessors = 0;
  int64_t shared_bytes = 0;  // of a block, at most
  int64_t l2_bytes = 0;
  double fp32_tflops = 0;  // multiply-adds outside tensor cores
  double f16_tflops = 0;   // tensor cores, 16-bit operands, FP32 sums, dense
  double tf32_tflops = 0;
  double copy_gbs = 0;
};

struct Machine {
  enum class Kind : unsigned char { kCpu, kGpu };
  std::string name;
  Kind kind = Kind::kCpu;
  CpuFacts cpu;  // of a CPU
  GpuFacts gpu;  // of a GPU
};

// "zen3", "zen4", "sapphire-rapids", "granite-rapids", "cascade-lake", "neoverse-n1", "no-vectors", "h200",
// "a100", "rtx4090"; nothing for other names.
std::optional<Machine> named_machine(std::string_view name);
std::span<const std::string_view> machine_names();
// Its facts in a line: "zen4: 8 threads, vectors of 16 floats, …".
std::string text_of(const Machine& machine);

}  // namespace retrograd
