// SPDX-License-Identifier: Apache-2.0
// The table of named machines. A CPU's peaks are nominal, as those of the CPU that is here; a GPU's are the
// maker's figures.
#include "base/machine.h"

#include <fmt/format.h>

#include <array>

namespace retrograd {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

struct CpuRow {
  std::string_view name;
  int vector_floats, vector_registers;
  bool masked_loads;
  bool bf16_pairs, bf16_tiles, f16_tiles;
  int64_t l1_kib, l2_kib, l3_kib;
  int l3_shared_by, threads;
};
constexpr CpuRow kCpus[] = {
    {"zen3", 8, 16, true, false, false, false, 32, 512, 32768, 8, 8},
    {"zen4", 16, 32, true, true, false, false, 32, 1024, 32768, 8, 8},
    {"sapphire-rapids", 16, 32, true, false, true, false, 48, 2048, 107520, 16, 16},
    {"granite-rapids", 16, 32, true, false, true, true, 48, 2048, 491520, 64, 16},
    {"cascade-lake", 16, 32, true, false, false, false, 32, 1024, 36608, 16, 16},
    {"neoverse-n1", 4, 32, false, false, false, false, 64, 1024, 32768, 16, 16},
    {"no-vectors", 1, 16, false, false, false, false, 32, 256, 2048, 2, 2},
};
struct GpuRow {
  std::string_view name;
  GpuFacts facts;
};
constexpr GpuRow kGpus[] = {
    {"h200", {90, 132, 227 * kKiB, 50 * kMiB, 67, 989, 494, 4000}},
    {"a100", {80, 108, 163 * kKiB, 40 * kMiB, 19.5, 312, 156, 1400}},
    {"rtx4090", {89, 128, 99 * kKiB, 72 * kMiB, 82, 165, 82, 920}},
};

}  // namespace

std::optional<Machine> named_machine(std::string_view name) {
  for (const CpuRow& row : kCpus) {
    if (row.name != name) continue;
    Machine machine{.name = std::string(name), .kind = Machine::Kind::kCpu, .cpu = {}, .gpu = {}};
    machine.cpu = {.vector_floats = row.vector_floats,
                   .vector_registers = row.vector_registers,
                   .masked_loads = row.masked_loads,
                   .bf16_pairs = row.bf16_pairs,
                   .bf16_tiles = row.bf16_tiles,
                   .f16_tiles = row.f16_tiles,
                   .caches = {{Cache{row.l1_kib * kKiB, 1}, Cache{row.l2_kib * kKiB, 1},
                               Cache{row.l3_kib * kKiB, row.l3_shared_by}}},
                   .threads = row.threads,
                   .gflops = nominal_gflops(row.vector_floats)};
    return machine;
  }
  for (const GpuRow& row : kGpus)
    if (row.name == name)
      return Machine{.name = std::string(name), .kind = Machine::Kind::kGpu, .cpu = {}, .gpu = row.facts};
  return std::nullopt;
}

std::span<const std::string_view> machine_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, std::size(kCpus) + std::size(kGpus)> names;
    size_t i = 0;
    for (const CpuRow& row : kCpus) names[i++] = row.name;
    for (const GpuRow& row : kGpus) names[i++] = row.name;
    return names;
  }();
  return kNames;
}

std::string text_of(const Machine& machine) {
  if (machine.kind == Machine::Kind::kCpu) {
    const CpuFacts& cpu = machine.cpu;
    const char* const tiles = cpu.f16_tiles ? ", bf16 and f16 tiles" : cpu.bf16_tiles ? ", bf16 tiles" : "";
    return fmt::format("{}: {} threads, vectors of {} floats{}{}, {:.0f} GFLOP/s each, copies {:.0f} GB/s",
                       machine.name, cpu.threads, cpu.vector_floats, cpu.bf16_pairs ? ", bf16 pairs" : "",
                       tiles, cpu.gflops, cpu.copy_gbs * cpu.threads);
  }
  const GpuFacts& gpu = machine.gpu;
  return fmt::format(
      "{}: compute capability {}.{}, {} multiprocessors, {} KiB of shared memory a block, {:.0f} MiB of L2, "
      "TFLOP/s {:.1f} in FP32, {:.0f} in TF32, {:.0f} in 16 bits, copies {:.0f} GB/s",
      machine.name, gpu.architecture / 10, gpu.architecture % 10, gpu.multiprocessors,
      gpu.shared_bytes / 1024, static_cast<double>(gpu.l2_bytes) / (1 << 20), gpu.fp32_tflops,
      gpu.tf32_tflops, gpu.f16_tflops, gpu.copy_gbs);
}

}  // namespace retrograd
