// SPDX-License-Identifier: Apache-2.0
// cpu.chunked_bias: how it cuts, what it declines and why. Its results are judged with every candidate's
// elsewhere.
#include "engines/cpu/chunked_bias.h"

#include <gtest/gtest.h>

namespace retrograd::engines::cpu {
namespace {

problem::BiasPass bias_pass(int64_t batch, int64_t channels, int64_t width) {
  problem::BiasPass pass;
  pass.batch = batch;
  pass.channels = channels;
  pass.spatial = {1, 1, width};
  return pass;
}

TEST(ChunkedBiasTest, ChunksCoverTheSumAndAreBounded) {
  for (int64_t length : {int64_t{0}, int64_t{1}, int64_t{8191}, int64_t{8192}, int64_t{8193},
                         int64_t{1} << 20, (int64_t{1} << 33) + 5}) {
    const BiasChunks cut = cut_bias(bias_pass(1, 3, length));
    EXPECT_GE(cut.chunk * cut.chunks, length) << length;
    EXPECT_LT(cut.chunk * (cut.chunks - 1), std::max<int64_t>(length, 1)) << length;
    EXPECT_LE(cut.chunks, 64) << length;
  }
}

TEST(ChunkedBiasTest, DeclinesWithAReason) {
  const Candidate& candidate = chunked_bias();
  EXPECT_EQ(candidate.supports(problem::ConvPass{}).reason(), "computes grad_bias only");
  EXPECT_NE(candidate.supports(bias_pass(1, 4, 100)).reason().find("100 elements"), std::string::npos);
  EXPECT_NE(candidate.supports(bias_pass(8, 512, 10000)).reason().find("512 channels"), std::string::npos);
  EXPECT_TRUE(candidate.supports(bias_pass(8, 2, 4096)).accepted());
}

TEST(ChunkedBiasTest, WorkspaceHoldsOnePartialSumAChunk) {
  const auto step = chunked_bias().make_step(bias_pass(8, 2, 4096));
  EXPECT_EQ(step->workspace_bytes(), 2 * 4 * sizeof(double));
}

}  // namespace
}  // namespace retrograd::engines::cpu
