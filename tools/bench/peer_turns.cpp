// SPDX-License-Identifier: Apache-2.0
// A median of medians: a slow moment of the machine spoils one turn.
#include "tools/bench/peer_turns.h"

#include "tools/measure/plan_runner.h"

namespace retrograd::tools {

PeerTurns::PeerTurns(const std::vector<std::unique_ptr<Peer>>& peers, const std::string& problem) {
  for (const auto& peer : peers) {
    Turns turns;
    turns.peer = peer.get();
    turns.row.name = peer->name();
    turns.row.declined = peer->declines(problem).value_or("");
    turns_.push_back(std::move(turns));
  }
}

void PeerTurns::take(double seconds, double most) {
  for (Turns& each : turns_) {
    constexpr size_t kFewest = 3;  // of fewer the median is no protection against one that was interrupted
    if (!each.row.declined.empty() || (each.spent > most && each.times.size() >= kFewest)) continue;
    const auto begin = Clock::now();
    if (const auto time = each.peer->time(seconds)) {
      each.times.push_back(time->seconds);
      each.row.variant = time->variant;
    } else {
      each.row.declined = each.peer->why_lost();
    }
    each.spent += seconds_since(begin);
  }
}

std::vector<PeerRow> PeerTurns::rows() const {
  std::vector<PeerRow> rows;
  for (const Turns& each : turns_) {
    rows.push_back(each.row);
    if (each.row.declined.empty()) rows.back().seconds = median(each.times);
  }
  return rows;
}

std::vector<PeerFacts> facts_of(const std::vector<std::unique_ptr<Peer>>& peers) {
  std::vector<PeerFacts> facts;
  for (const auto& peer : peers) facts.push_back({peer->name(), peer->version()});
  return facts;
}

}  // namespace retrograd::tools
