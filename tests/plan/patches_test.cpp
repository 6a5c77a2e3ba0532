// SPDX-License-Identifier: Apache-2.0
// Few channels on one side, planned without a GPU: a mirrored pass has the same products, patches have
// bounds, and both are chosen where they should be.
#include "engines/cuda/dense/patches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/machine.h"
#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/mirrored_pass.h"
#include "engines/cuda/dense/row_operand.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/generator/draw.h"

namespace retrograd::test {
namespace {

using engines::cuda::mirror;
using kernels::cuda::RowType;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::Window;

// Products along an axis: places of x and y, and the tap between them.
std::set<std::tuple<int64_t, int64_t, int64_t>> products_of(const Window& w, bool exchanged) {
  std::set<std::tuple<int64_t, int64_t, int64_t>> all;
  for (int64_t y = 0; y < w.y; ++y)
    for (int64_t t = 0; t < w.kernel; ++t)
      if (const int64_t x = position(w, y, t); x >= 0 && x < w.x)
        exchanged ? all.emplace(y, x, w.kernel - 1 - t) : all.emplace(x, y, t);
  return all;
}

TEST(MirroredPassTest, HasTheSameProducts) {
  Draw draw(3);
  for (int i = 0; i < 2000; ++i) {
    ConvPass pass;
    pass.kind = draw.pick({ConvPassKind::kForward, ConvPassKind::kGradInput, ConvPassKind::kGradWeight});
    pass.batch = 2;
    pass.x_channels = draw.number(1, 9);
    pass.y_channels = draw.number(1, 9);
    pass.x.operand = problem::Operand::kInput;
    pass.y.operand = problem::Operand::kGradOutput;
    for (Window& w : pass.axes) {
      w.kernel = draw.number(1, 5);
      w.dilation = draw.number(1, 3);
      w.pad_lo = draw.number(-2, 6);
      w.x = draw.number(1, 9);
      w.y = draw.number(1, 9);
    }
    for (int64_t& stride : pass.w.strides) stride = draw.number(-50, 50);
    ASSERT_TRUE(engines::cuda::can_mirror(pass));
    const auto mirrored = mirror(pass);
    const ConvPass& other = mirrored.pass;
    EXPECT_EQ(other.x_channels, pass.y_channels);
    EXPECT_EQ(other.y_channels, pass.x_channels);
    EXPECT_EQ(other.x.operand, problem::Operand::kGradOutput);
    EXPECT_EQ(other.result().operand, pass.result().operand);
    int64_t at = 0, mirrored_at = mirrored.weight_offset;  // of a weight
    for (size_t a = 0; a < 3; ++a) {
      EXPECT_EQ(products_of(other.axes[a], true), products_of(pass.axes[a], false));
      const int64_t tap = draw.number(0, pass.axes[a].kernel - 1);
      at += tap * pass.w.strides[2 + a];
      mirrored_at += (pass.axes[a].kernel - 1 - tap) * other.w.strides[2 + a];
    }
    EXPECT_EQ(at + 3 * pass.w.strides[0] + 5 * pass.w.strides[1],
              mirrored_at + 5 * other.w.strides[0] + 3 * other.w.strides[1]);
    const auto back = mirror(other);
    EXPECT_EQ(back.pass.kind, pass.kind);
    EXPECT_EQ(back.pass.w.strides, pass.w.strides);
    EXPECT_EQ(back.weight_offset + mirrored.weight_offset, 0);
  }
}

TEST(MirroredPassTest, NeedsStrideOneAndOneGroup) {
  ConvPass pass;
  EXPECT_TRUE(engines::cuda::can_mirror(pass));
  pass.groups = 2;
  EXPECT_FALSE(engines::cuda::can_mirror(pass));
  pass.groups = 1;
  pass.axes[1].stride = 2;
  EXPECT_FALSE(engines::cuda::can_mirror(pass));
}

void lay_planes(problem::PassTensor& tensor, const engines::cuda::Sizes5& sizes) {
  int64_t stride = 1;
  for (size_t axis = 5; axis-- > 0; stride *= sizes[axis]) tensor.strides[axis] = stride;
}
ConvPass forward_pass(int64_t batch, int64_t x_channels, int64_t y_channels, int64_t side, int64_t kernel) {
  ConvPass pass;
  pass.kind = ConvPassKind::kForward;
  pass.batch = batch;
  pass.x_channels = x_channels;
  pass.y_channels = y_channels;
  for (const size_t a : {1U, 2U}) pass.axes[a] = {side, side, kernel, 1, 1, kernel / 2};
  lay_planes(pass.x, engines::cuda::x_sizes(pass));
  lay_planes(pass.y, engines::cuda::y_sizes(pass));
  lay_planes(pass.w, engines::cuda::w_sizes(pass));
  return pass;
}

TEST(PatchesTest, HaveBounds) {
  using engines::cuda::has_patches;
  const ConvPass pass = forward_pass(16, 8, 328, 92, 5);
  EXPECT_TRUE(has_patches(pass, RowType::kF32));
  EXPECT_EQ(engines::cuda::patch_row(pass, RowType::kF16), 200);
  EXPECT_EQ(engines::cuda::patch_elements(pass, RowType::kF16), int64_t{16} * 92 * 92 * 200);
  EXPECT_EQ(engines::cuda::patch_row(forward_pass(1, 3, 8, 9, 3), RowType::kF16), 32);
  EXPECT_FALSE(has_patches(forward_pass(16, 8, 328, 92, 1), RowType::kF32));  // one tap
  EXPECT_FALSE(has_patches(forward_pass(16, 256, 8, 92, 5), RowType::kF32));  // many channels
  EXPECT_FALSE(has_patches(forward_pass(64, 8, 8, 512, 9), RowType::kF32));   // 43 GB
  EXPECT_FALSE(has_patches(forward_pass(1, 1, 8, 5, int64_t{1} << 40), RowType::kF32));
  ConvPass far = pass;
  far.axes[2].pad_lo = int64_t{1} << 30;
  EXPECT_FALSE(has_patches(far, RowType::kF32));
  ConvPass other = pass;
  other.kind = ConvPassKind::kGradInput;
  EXPECT_FALSE(has_patches(other, RowType::kF32));
}

TEST(PatchesTest, AreTakenWhereChannelsAreFew) {
  const auto machine = named_machine("h200");
  ASSERT_TRUE(machine);
  const auto takes = [&](const ConvPass& pass) {
    const RowType type = engines::cuda::row_type_of(pass);
    const auto source = engines::cuda::row_operand(pass, pass.x, engines::cuda::x_sizes(pass), type);
    return engines::cuda::gather_way(pass, source, type, kernels::cuda::ProductMath::kF32, *machine).patches;
  };
  EXPECT_TRUE(takes(forward_pass(16, 8, 328, 92, 5)));
  EXPECT_TRUE(takes(forward_pass(16, 3, 64, 112, 3)));
  EXPECT_FALSE(takes(forward_pass(16, 64, 64, 56, 3)));
}

// One side of 8 channels, the other of 328, 5 x 5 taps: no pass reads the many channels once a tap.
TEST(PatchesTest, FewChannelsAreFoldedWithTaps) {
  const auto machine = named_machine("h200");
  ASSERT_TRUE(machine);
  const struct {
    const char* text;
    std::string_view candidate;
  } cases[] = {
      {"conv input=16x328x92x92 weight=8x328x5x5 padding=2x2 mask=i", "cuda.mirrored"},
      {"conv input=16x328x92x92 weight=8x328x5x5 padding=2x2 mask=w", "cuda.mirrored"},
      {"conv input=16x328x92x92 weight=8x328x5x5 padding=2x2 mask=i dtype=f16", "cuda.mirrored"},
      {"conv input=16x328x92x92 weight=8x328x5x5 padding=2x2 mask=w dtype=bf16", "cuda.mirrored"},
      {"conv input=16x328x92x92 weight=8x328x5x5 padding=2x2 forward=1", "cuda.mirrored"},
      {"conv input=16x8x92x92 weight=328x8x5x5 padding=2x2 mask=i", "cuda.col2im"},
      {"conv input=16x8x92x92 weight=328x8x5x5 padding=2x2 mask=w", "cuda.row_products"},
      {"conv input=16x8x92x92 weight=328x8x5x5 padding=2x2 forward=1", "cuda.row_products"},
      {"conv input=16x8x92x92 weight=328x8x5x5 padding=2x2 forward=1 dtype=f16", "cuda.wgmma_products"},
  };
  for (const auto& [text, candidate] : cases) {
    SCOPED_TRACE(text);
    const auto problem = problem::judge(problem::parse_request(text).value());
    ASSERT_TRUE(problem.is_ok()) << problem.status().message();
    const problem::Pass& pass = problem.value().passes[0];
    const auto answers = plan::judge(engines::candidates(runtime::DeviceKind::kCuda), pass, *machine);
    EXPECT_EQ(answers[0].candidate->name(), candidate);
    const auto step = answers[0].candidate->make_step(pass, *machine);
    EXPECT_LT(step->workspace_bytes(), size_t{400} << 20);
  }
}

}  // namespace
}  // namespace retrograd::test
