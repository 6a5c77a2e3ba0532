// SPDX-License-Identifier: Apache-2.0
// Numbers that the instruction for pairs of BF16 would take for zero: the engines notice, and give the bits
// of exact products all the same.
#include <gtest/gtest.h>

#include "base/machine.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "problem/problem_text.h"
#include "support/exact.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/oracle.h"

namespace retrograd::test {
namespace {

using problem::Operand;

void check(const char* text, std::initializer_list<Operand> small_ones, bool tiles) {
  SCOPED_TRACE(text);
  auto request = problem::parse_request(text);
  ASSERT_TRUE(request.is_ok()) << request.status().message();
  const problem::Problem problem = legal_problem(request.value());
  Operands operands(request.value());
  std::mt19937_64 random(3);
  operands.fill_integers(random, 2);
  for (const Operand operand : small_ones) {
    HostTensor& tensor = *operands[operand];
    tensor.for_each([&](const Dims& index) { tensor.set(index, tensor.get(index) * 0x1p-66); });
  }
  const Gradients exact = exact_gradients(request.value(), operands);
  int found = 0;
  for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCpu)) {
    const std::string_view name = candidate->name();
    if (!name.starts_with(tiles ? "cpu.amx" : "cpu.bf16")) continue;
    SCOPED_TRACE(candidate->name());
    for (const problem::Pass& pass : problem.passes)
      found += candidate->supports(pass, engines::machine_of(runtime::DeviceKind::kCpu)).accepted();
    operands.poison_results();
    const engines::Candidate* const order[] = {candidate,
                                               engines::candidates(runtime::DeviceKind::kCpu).back()};
    ASSERT_TRUE(run_on_cpu(problem, operands, order).is_ok());
    expect_exact(operands, exact);
  }
  EXPECT_EQ(found, tiles ? 3 : 2) << "grad_input, and grad_weight, which tiles have two ways for";
}

void check_all(bool tiles) {
  for (const char* text :
       {"conv input=2x16x5x6:bf16 weight=32x16x3x3:bf16 dtype=bf16 padding=1x1",
        "conv input=2x32x5x12:bf16@1920x1x384x32 weight=32x32x3x3:bf16 dtype=bf16 stride=2x1",
        "conv input=2x32x12@384x1x32 weight=32x32x3@96x1x32 grad_output=2x32x10@320x1x32 dtype=bf16",
        "conv input=2x32x12@384x1x32 weight=32x32x1 grad_output=2x32x12@384x1x32 dtype=bf16",
        "conv input=2x32x4x7 weight=32x32x2x2 dtype=bf16 transposed=1 stride=2x2"}) {
    check(text, {Operand::kGradOutput, Operand::kInput, Operand::kWeight}, tiles);
    check(text, {Operand::kGradOutput}, tiles);
    check(text, {Operand::kInput, Operand::kWeight}, tiles);
  }
}

TEST(CellsTest, SmallNumbersAreKept) {
  if (!kernels::cpu::has_bf16_products()) GTEST_SKIP() << "this machine does not multiply pairs of bf16";
  check_all(false);
}

// Halves of D, H and W, even and odd, with padding, strides and channels side by side.
TEST(CellsTest, SmallNumbersAreKeptWherePlacesArePaired) {
  if (!kernels::cpu::has_bf16_products()) GTEST_SKIP() << "this machine does not multiply pairs of bf16";
  for (const char* text :
       {"conv input=1x16x9x6 weight=32x16x3x3 dtype=bf16 padding=1x1",
        "conv input=3x32x9x12@3456x1x384x32 weight=32x32x3x3 dtype=bf16 stride=2x1 padding=1x0",
        "conv input=1x32x41 weight=32x32x5 dtype=bf16 stride=2 padding=2",
        "conv input=1x32x8x2x3 weight=32x32x3x2x1 dtype=bf16 padding=1x0x0",
        "conv input=1x32x7x9 weight=32x32x1x1 dtype=bf16"}) {
    check(text, {Operand::kGradOutput, Operand::kInput, Operand::kWeight}, false);
    check(text, {Operand::kGradOutput}, false);
    check(text, {}, false);
  }
}

// 16-bit operands of a call whose third one is f32: cubeMathType 2 rounds them to f16, whose numbers end at
// 65504, cubeMathType 3 leaves them as they are.
TEST(CellsTest, OperandsRoundedToF16AreNotPaired) {
  const std::string text = "conv input=2x32x9 weight=32x32x3:bf16 grad_output=2x32x7:bf16 mask=i math=";
  for (const bool rounded : {true, false}) {
    const auto request = problem::parse_request(text + (rounded ? "2" : "3"));
    ASSERT_TRUE(request.is_ok()) << request.status().message();
    const problem::Problem problem = legal_problem(request.value());
    for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCpu))
      if (candidate->name() == std::string_view("cpu.bf16_gather")) {
        EXPECT_EQ(candidate->supports(problem.passes[0], *named_machine("zen4")).accepted(), !rounded);
      }
  }
}

TEST(CellsTest, SmallNumbersAreKeptFromTiles) {
  if (!kernels::cpu::has_tiles(kernels::cpu::CellType::kBf16))
    GTEST_SKIP() << "this machine has no tiles of bf16 products";
  check_all(true);
}

// The same of FP16, whose tiles multiply subnormal numbers.
TEST(CellsTest, F16InTiles) {
  if (!kernels::cpu::has_tiles(kernels::cpu::CellType::kF16))
    GTEST_SKIP() << "this machine has no tiles of f16 products";
  for (const char* text :
       {"conv input=2x16x5x6 weight=32x16x3x3 dtype=f16 padding=1x1",
        "conv input=2x32x5x12@1920x1x384x32 weight=32x32x3x3 dtype=f16 stride=2x1",
        "conv input=2x32x12@384x1x32 weight=32x32x1 grad_output=2x32x12@384x1x32 dtype=f16",
        "conv input=2x32x4x7 weight=32x32x2x2 dtype=f16 transposed=1 stride=2x2"})
    check(text, {}, true);
}

TEST(CellsTest, TilesTakeTypesThatTheMachineMultiplies) {
  const auto taken = [](const char* text, const char* machine) {
    const problem::Problem problem = legal_problem(problem::parse_request(text).value());
    int count = 0;
    for (const engines::Candidate* candidate : engines::candidates(runtime::DeviceKind::kCpu))
      for (const problem::Pass& pass : problem.passes)
        count += std::string_view(candidate->name()).starts_with("cpu.amx") &&
                 candidate->supports(pass, *named_machine(machine)).accepted();
    return count;
  };
  const char* const f16 = "conv input=2x32x12 weight=32x32x3 dtype=f16";
  EXPECT_EQ(taken(f16, "granite-rapids"), 3);
  EXPECT_EQ(taken(f16, "sapphire-rapids"), 0);
  EXPECT_EQ(taken("conv input=2x32x12 weight=32x32x3 dtype=bf16", "sapphire-rapids"), 3);
  EXPECT_EQ(taken("conv input=2x32x12 weight=32x32x3:bf16 grad_output=2x32x10 dtype=f16", "granite-rapids"),
            2);
  // BF16 that cubeMathType 2 rounds to FP16.
  const char* const rounded = "conv input=2x32x12 weight=32x32x3:bf16 grad_output=2x32x10:bf16 mask=i math=2";
  EXPECT_EQ(taken(rounded, "granite-rapids"), 0);
}

}  // namespace
}  // namespace retrograd::test
