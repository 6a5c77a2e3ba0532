// SPDX-License-Identifier: Apache-2.0
// Caches as the system tells them, and where tensors live.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tools/measure/caches.h"
#include "tools/measure/machine_limits.h"

namespace retrograd::tools {
namespace {

void write(const std::filesystem::path& folder, const char* level, const char* type, const char* size,
           const char* cpus) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "level") << level << '\n';
  std::ofstream(folder / "type") << type << '\n';
  std::ofstream(folder / "size") << size << '\n';
  std::ofstream(folder / "shared_cpu_list") << cpus << '\n';
}

TEST(CachesTest, ReadFromFiles) {
  const std::filesystem::path folder = testing::TempDir() + "retrograd_caches";
  std::filesystem::remove_all(folder);
  write(folder / "index0", "1", "Data", "48K", "0,8");
  write(folder / "index1", "1", "Instruction", "64K", "0,8");
  write(folder / "index2", "2", "Unified", "2M", "0,8");
  const Caches caches = read_caches(folder);
  EXPECT_EQ(caches.level[0].bytes, 48 << 10);
  EXPECT_EQ(caches.level[0].shared_by, 2);
  EXPECT_EQ(caches.level[1].bytes, 2 << 20);
  EXPECT_EQ(caches.level[2].bytes, 32 << 20);  // not told
  std::filesystem::remove_all(folder);
}

TEST(ProcessorTest, IsNamedAsTheSystemDoes) {
  const std::string file = testing::TempDir() + "retrograd_cpuinfo";
  const auto name_in = [&file](const char* text) {
    std::ofstream(file) << text;
    return processor_name(file);
  };
  EXPECT_EQ(name_in("processor\t: 0\nmodel name\t: AMD EPYC 9R14\n"), "AMD EPYC 9R14");
  EXPECT_EQ(name_in("processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"),
            "Neoverse N1");
  EXPECT_EQ(name_in("CPU implementer\t: 0x48\nCPU part\t: 0xd01\n"), "Kunpeng 920");
  EXPECT_EQ(name_in("CPU implementer\t: 0x61\nCPU part\t: 0x022\n"), "ARM core 0x022 of implementer 0x61");
  EXPECT_EQ(name_in(""), "unknown");
  std::filesystem::remove(file);
}

TEST(CachesTest, ListsOfProcessors) {
  EXPECT_EQ(count_in_list("0-3,8"), 5);
  EXPECT_EQ(count_in_list("7"), 1);
  EXPECT_EQ(count_in_list(""), 0);
}

TEST(MachineLimitsTest, LevelOfTensors) {
  const Caches caches{{{{32 << 10, 1}, {1 << 20, 1}, {32 << 20, 2}}}};
  EXPECT_EQ(level_of(1.5 * (1 << 20), caches, 2), MemoryLevel::kL2);
  EXPECT_EQ(level_of(1.5 * (1 << 20), caches, 1), MemoryLevel::kL3);
  EXPECT_EQ(level_of(24 << 20, caches, 2), MemoryLevel::kL3);
  EXPECT_EQ(level_of(25 << 20, caches, 2), MemoryLevel::kDram);
}

TEST(MachineLimitsTest, SomethingIsMeasured) {
  runtime::ThreadPool pool(2);
  MachineLimits limits(pool, {{{{32 << 10, 1}, {64 << 10, 1}, {256 << 10, 2}}}});
  EXPECT_GT(limits.measure_peak(), 1e6);
  for (MemoryLevel level : {MemoryLevel::kL2, MemoryLevel::kL3, MemoryLevel::kDram})
    EXPECT_GT(limits.measure_copy(level), 1e6) << name_of(level);
}

}  // namespace
}  // namespace retrograd::tools
