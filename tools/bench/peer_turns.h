// SPDX-License-Identifier: Apache-2.0
// PeerTurns: one problem through all peers, a short time each between ours, and the median of each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/peer.h"
#include "tools/bench/report.h"

namespace retrograd::tools {

class PeerTurns {
 public:
  // Gives the problem to all of them; who does not take it has a reason in its row.
  PeerTurns(const std::vector<std::unique_ptr<Peer>>& peers, const std::string& problem);

  // Everybody that takes it calls for about that long, at least once. Who has used up `most` seconds in
  // three turns or more is left out.
  void take(double seconds, double most);

  std::vector<PeerRow> rows() const;

 private:
  struct Turns {
    Peer* peer = nullptr;
    PeerRow row;
    std::vector<double> times;
    double spent = 0;
  };
  std::vector<Turns> turns_;
};

// Who they are, for the reports.
std::vector<PeerFacts> facts_of(const std::vector<std::unique_ptr<Peer>>& peers);

}  // namespace retrograd::tools
