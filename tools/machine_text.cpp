// SPDX-License-Identifier: Apache-2.0
// The facts of a Machine.
#include "tools/machine_text.h"

#include <fmt/format.h>

namespace retrograd::tools {

std::string text_of(const Machine& machine) {
  if (machine.kind == Machine::Kind::kCpu) {
    const CpuFacts& cpu = machine.cpu;
    return fmt::format("{}: {} threads, vectors of {} floats{}{}, {:.0f} GFLOP/s each, copies {:.0f} GB/s",
                       machine.name, cpu.threads, cpu.vector_floats, cpu.bf16_pairs ? ", bf16 pairs" : "",
                       cpu.bf16_tiles ? ", bf16 tiles" : "", cpu.gflops, cpu.copy_gbs * cpu.threads);
  }
  const GpuFacts& gpu = machine.gpu;
  return fmt::format(
      "{}: compute capability {}.{}, {} multiprocessors, {} KiB of shared memory a block, {:.0f} MiB of L2, "
      "TFLOP/s {:.1f} in FP32, {:.0f} in TF32, {:.0f} in 16 bits, copies {:.0f} GB/s, {}",
      machine.name, gpu.architecture / 10, gpu.architecture % 10, gpu.multiprocessors,
      gpu.shared_bytes / 1024, static_cast<double>(gpu.l2_bytes) / (1 << 20), gpu.fp32_tflops,
      gpu.tf32_tflops, gpu.f16_tflops, gpu.copy_gbs, gpu.cudnn ? "cuDNN" : "no cuDNN");
}

}  // namespace retrograd::tools
