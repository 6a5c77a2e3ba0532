// SPDX-License-Identifier: Apache-2.0
// cpu.chunked_bias: how it cuts, what it declines and why. Its results are
// judged with every candidate's elsewhere.
#include "engines/cpu/bias/chunked_bias.h"

#include <gtest/gtest.h>

#include "engines/cpu/implementations.h"
#include "engines/machines.h"

namespace retrograd::engines::cpu {
namespace {

problem::BiasPass planes(int64_t batch, int64_t channels, int64_t height, int64_t width) {
  problem::BiasPass pass;
  pass.batch = batch;
  pass.channels = channels;
  pass.spatial = {1, height, width};
  const int64_t area = height * width;
  pass.grad_output.strides = {channels * area, area, area, width, 1};
  return pass;
}

problem::BiasPass channels_last(int64_t batch, int64_t channels, int64_t height, int64_t width) {
  problem::BiasPass pass = planes(batch, channels, height, width);
  const int64_t row = width * channels;
  pass.grad_output.strides = {height * row, 1, height * row, row, channels};
  return pass;
}

TEST(ChunkedBiasTest, ChunksCoverThePositionsAndAreBounded) {
  for (const int64_t width :
       {int64_t{1}, int64_t{32767}, int64_t{32768}, int64_t{32769}, int64_t{1} << 22, (int64_t{1} << 33) + 5})
    for (const BiasPlan& plan :
         {plan_bias(planes(1, 3, 1, width)), plan_bias(channels_last(1, 3, 1, width))}) {
      EXPECT_EQ(plan.positions, width);
      EXPECT_GE(plan.chunk * plan.chunks, width);
      EXPECT_LT(plan.chunk * (plan.chunks - 1), width);
      EXPECT_LE(plan.chunks, 64);
    }
}

TEST(ChunkedBiasTest, NeighboursAreOneAxis) {
  EXPECT_EQ(plan_bias(planes(4, 3, 20, 20)).rank, 2);  // images, planes
  EXPECT_EQ(plan_bias(channels_last(4, 3, 20, 20)).rank,
            1);  // all positions in a line
  problem::BiasPass slice = planes(4, 3, 20, 20);
  slice.spatial[2] = 19;
  EXPECT_EQ(plan_bias(slice).rank, 3);
}

TEST(ChunkedBiasTest, SumsSideBySideWhereChannelsLieTogether) {
  EXPECT_FALSE(plan_bias(planes(8, 64, 20, 20)).by_columns);
  EXPECT_TRUE(plan_bias(channels_last(8, 64, 20, 20)).by_columns);
  EXPECT_TRUE(plan_bias(planes(8, 64, 1, 1)).by_columns);
  const BiasPlan small = plan_bias(planes(128, 64, 2, 2));
  EXPECT_TRUE(small.by_columns);
  EXPECT_EQ(small.columns, 256);
  EXPECT_EQ(small.per_channel, 4);
  EXPECT_EQ(small.positions, 128);
  EXPECT_FALSE(plan_bias(planes(2, 64, 2, 2)).by_columns) << "too few images";
}

TEST(ChunkedBiasTest, SmallSumsStayWithTheCaller) {
  const BiasPlan plan = plan_bias(planes(1, 16, 32, 32));
  EXPECT_GE(plan.tasks_at_once, plan.tasks);
}

TEST(ChunkedBiasTest, DeclinesWithAReason) {
  const Candidate& candidate = chunked_bias();
  EXPECT_EQ(candidate.supports(problem::ConvPass{}, machine_of(runtime::DeviceKind::kCpu)).reason(),
            "computes grad_bias only");
  EXPECT_EQ(candidate.supports(planes(0, 3, 4, 4), machine_of(runtime::DeviceKind::kCpu)).reason(),
            "there is nothing to add");
  EXPECT_NE(candidate.supports(planes(1, int64_t{1} << 30, 1, 1), machine_of(runtime::DeviceKind::kCpu))
                .reason()
                .find("1073741824 channels"),
            std::string::npos);
  EXPECT_TRUE(candidate.supports(planes(1, 1, 1, 1), machine_of(runtime::DeviceKind::kCpu)).accepted());
}

TEST(ChunkedBiasTest, WorkspaceHoldsOnePartialSumAChunk) {
  EXPECT_EQ(chunked_bias()
                .make_step(planes(4, 2, 128, 128), machine_of(runtime::DeviceKind::kCpu))
                ->workspace_bytes(),
            2 * 2 * sizeof(double));
}

}  // namespace
}  // namespace retrograd::engines::cpu
