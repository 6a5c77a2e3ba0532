// SPDX-License-Identifier: Apache-2.0
// The table of named machines: facts that belong together.
#include "base/machine.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

TEST(MachineTest, EveryNameHasOne) {
  int cpus = 0, gpus = 0;
  for (const std::string_view name : machine_names()) {
    const auto machine = named_machine(name);
    ASSERT_TRUE(machine) << name;
    EXPECT_EQ(machine->name, name);
    ++(machine->kind == Machine::Kind::kCpu ? cpus : gpus);
  }
  EXPECT_GE(cpus, 5);
  EXPECT_GE(gpus, 3);
  EXPECT_FALSE(named_machine("zen"));
  EXPECT_FALSE(named_machine(""));
}

TEST(MachineTest, FactsOfACpuFitEachOther) {
  for (const std::string_view name : machine_names()) {
    SCOPED_TRACE(name);
    const Machine machine = *named_machine(name);
    if (machine.kind != Machine::Kind::kCpu) continue;
    const CpuFacts& cpu = machine.cpu;
    EXPECT_TRUE(cpu.vector_floats == 1 || cpu.vector_floats == 4 || cpu.vector_floats == 8 ||
                cpu.vector_floats == 16);
    EXPECT_TRUE(cpu.vector_registers == 16 || cpu.vector_registers == 32);
    EXPECT_EQ(cpu.masked_loads, cpu.vector_floats >= 8);
    if (cpu.bf16_pairs || cpu.bf16_tiles) {
      EXPECT_EQ(cpu.vector_floats, 16);
    }
    EXPECT_LE(cpu.f16_tiles, cpu.bf16_tiles);
    int64_t below = 0;
    for (const Cache& cache : cpu.caches.level) {
      EXPECT_GT(cache.bytes, below);
      EXPECT_GE(cache.shared_by, 1);
      below = cache.bytes;
    }
    EXPECT_GE(cpu.threads, 1);
    EXPECT_GT(cpu.gflops, 0);
    EXPECT_GT(cpu.copy_gbs, 0);
  }
}

}  // namespace
}  // namespace retrograd
