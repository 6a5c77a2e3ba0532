// SPDX-License-Identifier: Apache-2.0
// Talking with peers, well-behaved and others.
#include "tools/bench/peer.h"

#include <gtest/gtest.h>

namespace retrograd::tools {
namespace {

const std::string kEcho = "sh " RETROGRAD_SOURCE_DIR "/tools/tests/echo_peer.sh";

TEST(PeerTest, AnswersAreRead) {
  auto started = Peer::start(kEcho, 3);
  ASSERT_TRUE(started.is_ok()) << started.status().message();
  Peer& peer = *started.value();
  EXPECT_EQ(peer.name(), "echo");
  EXPECT_EQ(peer.version(), "1 a peer of tests, --threads 3");
  EXPECT_EQ(peer.declines("conv input=1x1x1 weight=1x1x1"), std::nullopt);
  const auto time = peer.time(0.1);
  ASSERT_TRUE(time.has_value());
  EXPECT_DOUBLE_EQ(time->seconds, 1e-6);
  EXPECT_EQ(time->runs, 7);
  EXPECT_EQ(time->variant, "plain");
  EXPECT_EQ(peer.declines("conv dtype=e4m3"), "8-bit types");
  EXPECT_FALSE(peer.lost());
}

TEST(PeerTest, OneThatDoesNotStart) {
  const auto peer = Peer::start("exit 3;", 1);
  ASSERT_FALSE(peer.is_ok());
  EXPECT_NE(peer.status().message().find("it has ended"), std::string::npos) << peer.status().message();
  const auto stranger = Peer::start("echo hello", 1);
  ASSERT_FALSE(stranger.is_ok());
  EXPECT_NE(stranger.status().message().find("expected ready NAME"), std::string::npos);
}

TEST(PeerTest, OneThatEndsOrTalksNonsenseIsLost) {
  auto gone = Peer::start("echo ready gone 1; exit;", 1);
  ASSERT_TRUE(gone.is_ok());
  EXPECT_EQ(gone.value()->declines("conv"), "it has ended");
  EXPECT_TRUE(gone.value()->lost());
  EXPECT_FALSE(gone.value()->time(0.1).has_value());
  auto nonsense = Peer::start("echo ready nonsense 1; while read -r x; do echo yes; done;", 1);
  ASSERT_TRUE(nonsense.is_ok());
  EXPECT_EQ(nonsense.value()->declines("conv"), "'yes' is no answer to a problem");
  EXPECT_TRUE(nonsense.value()->lost());
}

}  // namespace
}  // namespace retrograd::tools
