// SPDX-License-Identifier: Apache-2.0
// The rows of a benchmark: what was measured, what follows from it, and their forms: a line, CSV, JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/measure/machine_limits.h"
#include "tools/measure/work.h"

namespace retrograd::tools {

struct PeerRow {
  std::string name;
  double seconds = 0;    // 0: not measured
  std::string variant;   // the fastest
  std::string declined;  // why it is not measured
};

struct BenchRow {
  std::string name, pass, dtype, problem, steps;
  Work work;
  double seconds = 0;  // median of a call
  int64_t runs = 0;
  size_t workspace_bytes = 0;
  double peak = 0;  // operations a second, measured with this row
  double copy = 0;  // bytes a second, of the level the tensors live in, measured with this row
  MemoryLevel level = MemoryLevel::kL2;
  // The first call of all, with its planning; 0: not asked for. Whole calls are later ones that plan again,
  // as those of aclnn do, and find the caches in the same state.
  double planning_seconds = 0, first_call_seconds = 0, whole_call_seconds = 0;
  std::vector<PeerRow> peers;

  // Per cent.
  double of_peak() const { return 100 * work.operations / seconds / peak; }
  double of_copy() const { return 100 * work.bytes / seconds / copy; }
  double of_roofline() const { return of_peak() > of_copy() ? of_peak() : of_copy(); }
  // Of the fastest peer that took it; null: none did.
  const PeerRow* best_peer() const;
};

struct PeerFacts {
  std::string name, version;
};
struct BenchFacts {
  std::string version, processor, target;
  int threads = 1;
  Caches caches;
  double seconds = 0;
  std::vector<PeerFacts> peers;
};

// "0.123 ms   104.2 GFLOP/s …": one line.
std::string to_line(const BenchRow& row);
std::string csv_header(const BenchFacts& facts);
std::string to_csv(const BenchFacts& facts, const BenchRow& row);
nlohmann::json to_json(const BenchFacts& facts, const std::vector<BenchRow>& rows);

struct RatioSummary {
  std::string peer;  // "best" for the fastest of them
  int rows = 0;
  double geometric_mean = 0;
  int below = 0;  // rows slower than kTolerated
  static constexpr double kTolerated = 0.95;
};
// One for each peer, then the best; those without a row are left out.
std::vector<RatioSummary> summarize(const BenchFacts& facts, const std::vector<BenchRow>& rows);

}  // namespace retrograd::tools
