// SPDX-License-Identifier: Apache-2.0
// The figures of a sweep: problems drawn from what networks have, and what was measured of each pass.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/bench/report.h"
#include "tools/commands.h"
#include "tools/measure/implementation_times.h"

namespace retrograd::tools {

struct SweepProblem {
  int64_t index = 0;   // of its draw
  std::string family;  // "dense", "depthwise", …: the class of shapes it was drawn from
  problem::Request request;
};
// The same for the same seed, bounds, types, layout and family.
Result<std::vector<SweepProblem>> sweep_problems(const SweepOptions& options);

struct SweepFigure {
  int64_t index = 0;
  std::string family;
  std::string gradient;  // "i", "w", "b", "all", "f"
  std::string problem;   // as text, with what is timed alone
  PassTimes times;
  double roofline = 0;            // share of what the machine can do, of 1
  double one_thread_seconds = 0;  // 0: not asked for
  std::vector<PeerRow> peers;

  // Null where none took it.
  const PeerRow* fastest_peer() const;
  // Its time over ours, or 0.
  double ratio() const;
  // Bytes of the workspace over what they may be: 1.5 times the largest operand and 8 MB.
  double workspace_share() const;
  // Time of one thread over that of all; 0 where one thread takes less than a millisecond.
  double speed_up() const;
};
struct SweepResult {
  std::vector<SweepFigure> figures;
  std::vector<PeerFacts> peers;
  int failures = 0;  // problems left out and peers lost, reported on stderr
};
// Measures all of them; `each` sees a figure as soon as it is there. `begin` is called once the options have
// been found right and the peers run; what it answers is the answer where it fails.
Result<SweepResult> measure_sweep(
    const SweepOptions& options, const std::function<void(const SweepFigure&)>& each,
    const std::function<Status()>& begin = [] { return Status::ok(); });

// One row for each implementation that was timed.
std::string sweep_csv_header();
std::string sweep_csv_rows(const SweepOptions& options, const SweepFigure& figure);
nlohmann::json sweep_json(const SweepOptions& options, const SweepResult& result);
// The same as a page that needs nothing else.
std::string sweep_page(const SweepOptions& options, const SweepResult& result);
// Percentiles by family, then the worst twenty.
std::string sweep_summary(const SweepOptions& options, const std::vector<SweepFigure>& figures);

}  // namespace retrograd::tools
