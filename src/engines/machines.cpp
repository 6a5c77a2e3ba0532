// SPDX-License-Identifier: Apache-2.0
// Fills in a Machine from the hardware, once.
#include "engines/machines.h"

#include "base/settings.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vector_shape.h"
#include "runtime/thread_pool.h"

namespace retrograd::engines {
namespace {

// Cuts must not depend on the machine where bits are portable.
constexpr Caches kPortableCaches{{{{32 << 10, 1}, {1 << 20, 1}, {32 << 20, 8}}}};

Machine this_cpu() {
  // Before the first kernel is asked how wide a vector is.
  kernels::cpu::limit_targets(settings().cpu_isa);
  const bool portable = settings().bits == Bits::kPortable;
  if (portable) kernels::cpu::make_bits_portable();
  Machine machine;
  machine.name = kernels::cpu::target_name();
  machine.kind = Machine::Kind::kCpu;
  CpuFacts& cpu = machine.cpu;
  const kernels::cpu::VectorShape& vectors = kernels::cpu::vector_shape();
  cpu.vector_floats = static_cast<int>(vectors.floats);
  cpu.vector_registers = vectors.registers;
  cpu.masked_loads = vectors.masked_loads;
  cpu.bf16_pairs = kernels::cpu::has_bf16_products();
  cpu.bf16_tiles = kernels::cpu::has_tiles(kernels::cpu::CellType::kBf16);
  cpu.f16_tiles = kernels::cpu::has_tiles(kernels::cpu::CellType::kF16);
  cpu.caches = portable ? kPortableCaches : machine_caches();
  cpu.threads = runtime::ThreadPool::instance().threads();
  cpu.gflops = nominal_gflops(cpu.vector_floats);
  return machine;
}

}  // namespace

const Machine& machine_of(const runtime::Device& device) {
  if (device.kind() == runtime::DeviceKind::kCuda) return device.gpu_machine();
  static const Machine cpu = this_cpu();
  return cpu;
}

const Machine& machine_of(runtime::DeviceKind kind) {
  static const Machine none{.name = "no GPU", .kind = Machine::Kind::kGpu, .cpu = {}, .gpu = {}};
  const runtime::Device* const device = runtime::find_device(kind, 0);
  return device == nullptr ? none : machine_of(*device);
}

}  // namespace retrograd::engines
