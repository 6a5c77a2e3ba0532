// SPDX-License-Identifier: Apache-2.0
// Peer: another library in a program of its own that times the same problems. One line out, one line back:
//
//   (start)             → ready NAME VERSION DETAILS…
//   problem <text>      → ok VARIANTS           or  no REASON
//   time SECONDS        → ns MEDIAN RUNS VARIANT
//   quit
//
// Whole calls on plain tensors; `mask=` in the text says which gradients. A peer is stopped whenever it is
// not its turn: idle threads of some libraries look for work for a while, and would be paid for by whoever is
// timed next.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"

namespace retrograd::tools {

struct PeerTime {
  double seconds = 0;  // median of a call
  int64_t runs = 0;
  std::string variant;
};

class Peer {
 public:
  // Runs `command --threads N` in a shell and waits until it is ready.
  static Result<std::unique_ptr<Peer>> start(const std::string& command, int threads);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }  // with the details
  // Gone, or its answers make no sense: asked nothing more.
  bool lost() const { return !lost_.empty(); }
  const std::string& why_lost() const { return lost_; }

  // The reason when it does not take the problem.
  std::optional<std::string> declines(const std::string& problem);
  // Nullopt when it is lost.
  std::optional<PeerTime> time(double seconds);

 private:
  Peer() = default;
  std::optional<std::string> ask(const std::string& line, std::chrono::seconds patience);
  std::optional<std::string> read_line(std::chrono::seconds patience);
  void lose(std::string why);

  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  std::string unread_;
  std::string name_, version_, lost_;
};

}  // namespace retrograd::tools
