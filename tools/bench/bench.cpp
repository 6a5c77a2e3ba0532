// SPDX-License-Identifier: Apache-2.0
// `retrograd bench`: whole calls on plain memory, ours and the peers' in turn, next to what the machine can
// do at that moment.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engines/machines.h"
#include "engines/registry.h"
#include "kernels/cpu/targets.h"
#include "plan/plan.h"
#include "problem/operand_views.h"
#include "problem/problem_text.h"
#include "tools/bench/jobs.h"
#include "tools/bench/peer_turns.h"
#include "tools/bench/report.h"
#include "tools/commands.h"
#include "tools/devices.h"
#include "tools/measure/device_limits.h"
#include "tools/measure/timed_plan.h"
#include "tools/print_error.h"
#include "tools/progress.h"

namespace retrograd::tools {
namespace {

// One small problem of each kind: what a reader sees first.
constexpr const char* kBenchProblems[] = {
    "conv input=2x64x14x14 weight=64x64x3x3 padding=1x1",
    "conv input=2x64x14x14 weight=64x64x3x3 padding=1x1 dtype=bf16",
    "conv input=4x64x28x28 weight=64x1x3x3 padding=1x1 groups=64",
    "conv input=2x32x256 weight=32x32x3 dilation=4 padding=4",
    "conv input=1x16x8x14x14 weight=16x16x3x3x3 padding=1x1x1",
    "conv input=2x32x14x14 weight=32x16x4x4 stride=2x2 padding=1x1 transposed=1",
    "conv_tbc input=100x4x32 weight=3x32x32 pad=1",
    "avgpool input=4x64x56x56 kernel=3x3 stride=2x2 padding=1x1",
    "avgpool input=2x32x16x16x16 kernel=2x2x2",
};

// Rounds of everybody in turn: a slow moment of the machine then hits all of them, and the median drops it.
constexpr int kBenchRounds = 5;
constexpr int kFewestBenchRounds = 3;  // where a single call takes as long as the whole row should

BenchFacts facts_of(const BenchOptions& options, const runtime::Device& device,
                    const std::vector<std::unique_ptr<Peer>>& peers) {
  engines::candidates(runtime::DeviceKind::kCpu);  // from here on RETROGRAD_CPU_ISA is in effect
  BenchFacts facts;
  facts.version = RETROGRAD_VERSION;
  const bool on_cpu = device.kind() == runtime::DeviceKind::kCpu;
  facts.processor = on_cpu ? processor_name() : engines::machine_of(device).name;
  facts.target = on_cpu ? kernels::cpu::target_name() : device.soc_name();
  facts.threads = runtime::ThreadPool::instance().threads();
  facts.caches = read_caches();
  facts.seconds = options.seconds;
  facts.peers = facts_of(peers);
  return facts;
}

DType dtype_of(const problem::Request& request) {
  return std::visit([](const auto& r) { return r.input.dtype; }, request);
}

class Bench {
 public:
  Bench(const BenchOptions& options, runtime::Device& device, std::vector<std::unique_ptr<Peer>>& peers)
      : options_(options),
        device_(device),
        peers_(peers),
        facts_(facts_of(options, device, peers)),
        limits_(device),
        start_(limits_.measure(0, DType::kF32).peak) {}
  const BenchFacts& facts() const { return facts_; }
  double first_peak() const { return start_; }

  Result<BenchRow> measure(const std::string& name, Gradient gradient, const problem::Request& request) {
    BenchRow row;
    row.name = name;
    row.pass = name_of(gradient);
    row.dtype = name_of(dtype_of(request));
    row.problem = to_text(request);
    RG_TRY(auto ours, TimedPlan::make(request, device_));
    row.work = ours.work();
    row.steps = ours.plan().describe();
    row.workspace_bytes = ours.plan().workspace_bytes();
    RG_TRY(const double warm_up, ours.call());
    if (options_.first_call) {
      row.planning_seconds = ours.planning_seconds();
      row.first_call_seconds = ours.planning_seconds() + warm_up;
    }
    PeerTurns peers(peers_, row.problem);
    RG_CHECK(run_rounds(ours, peers, request, row));
    row.peers = peers.rows();
    return row;
  }

 private:
  Status run_rounds(TimedPlan& ours, PeerTurns& peers, const problem::Request& request, BenchRow& row) {
    std::vector<double> our_times, whole_times;
    const double share = options_.seconds / kBenchRounds;
    const auto begin = Clock::now();
    for (int round = 0; round < kBenchRounds; ++round) {
      const double budget = options_.seconds * static_cast<double>(2 * (1 + peers_.size()));
      if (round >= kFewestBenchRounds && seconds_since(begin) > budget) break;
      const Limits limits = limits_.measure(row.work.bytes, dtype_of(request));
      row.peak = std::max(row.peak, limits.peak);
      row.copy = std::max(row.copy, limits.copy);
      row.level = limits.level;
      if (options_.first_call) {
        RG_TRY(const double whole, ours.whole_call(request));
        whole_times.push_back(whole);
      }
      RG_TRY(const double one, ours.time(share, row.runs));
      our_times.push_back(one);
      peers.take(share, std::numeric_limits<double>::infinity());
    }
    row.seconds = median(std::move(our_times));
    if (options_.first_call) row.whole_call_seconds = median(std::move(whole_times));
    return Status::ok();
  }

  const BenchOptions& options_;
  runtime::Device& device_;
  std::vector<std::unique_ptr<Peer>>& peers_;
  BenchFacts facts_;
  DeviceLimits limits_;
  double start_;
};

// The files hold every finished row at any time: a run that is stopped has still measured something.
class Files {
 public:
  Files(const BenchOptions& options, const BenchFacts& facts)
      : facts_(facts), csv_name_(options.csv), json_(options.json) {
    if (!options.csv.empty()) {
      csv_.open(options.csv);
      write_csv(csv_header(facts));
    }
    write({});
  }
  const Status& status() const { return status_; }

  void write(const std::vector<BenchRow>& rows) {
    if (csv_.is_open() && !rows.empty()) write_csv(to_csv(facts_, rows.back()));
    if (json_.empty() || !status_.is_ok()) return;
    std::ofstream out(json_);
    out << to_json(facts_, rows).dump(1) << '\n' << std::flush;
    if (!out) status_ = not_written("--json", json_, out.is_open());
  }

 private:
  static Status not_written(const char* option, const std::string& name, bool opened) {
    return {opened ? Code::kInternal : Code::kInvalidArgument,
            fmt::format("{}: '{}' cannot be written", option, name)};
  }
  void write_csv(const std::string& line) {
    csv_ << line << std::endl;
    if (!csv_) status_ = not_written("--csv", csv_name_, csv_.is_open());
  }

  const BenchFacts& facts_;
  std::string csv_name_, json_;
  std::ofstream csv_;
  Status status_;
};

void print_summary(const BenchFacts& facts, const std::vector<BenchRow>& rows) {
  if (rows.size() > 1) {
    const auto [low, high] = std::minmax_element(
        rows.begin(), rows.end(), [](const BenchRow& a, const BenchRow& b) { return a.peak < b.peak; });
    fmt::print("{} rows; peak {:.1f} to {:.1f} GFLOP/s\n", rows.size(), low->peak * 1e-9, high->peak * 1e-9);
  }
  for (const RatioSummary& s : summarize(facts, rows))
    fmt::print("{:<10} geometric mean {:.3f}x over {} rows, {} below {}\n", s.peer, s.geometric_mean, s.rows,
               s.below, RatioSummary::kTolerated);
}

int fail(const Status& status, int code) {
  print_error("retrograd bench: {}\n", status.message());
  return code;
}

}  // namespace

int bench(const BenchOptions& options) {
  const auto jobs = bench_jobs(options, kBenchProblems);
  if (!jobs.is_ok()) return fail(jobs.status(), 2);
  const auto device = device_from_name(options.device);
  if (!device.is_ok()) return fail(device.status(), 1);
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& command : options.peers) {
    auto peer = Peer::start(command, runtime::ThreadPool::instance().threads());
    if (!peer.is_ok()) return fail(peer.status(), 1);
    peers.push_back(std::move(peer).value());
  }
  Bench bench(options, *device.value(), peers);
  Files files(options, bench.facts());
  if (!files.status().is_ok())
    return fail(files.status(), files.status().code() == Code::kInvalidArgument ? 2 : 1);

  fmt::print("median of whole calls, {} threads, {}, FMA peak {:.1f} GFLOP/s", bench.facts().threads,
             bench.facts().target, bench.first_peak() * 1e-9);
  for (const PeerFacts& peer : bench.facts().peers) fmt::print("; {} {}", peer.name, peer.version);
  fmt::print("\n");
  std::vector<BenchRow> rows;
  int code = 0;
  Progress progress(jobs.value().size());
  for (size_t i = 0; i < jobs.value().size(); ++i) {
    const BenchJob& job = jobs.value()[i];
    progress.show(i, job.name);
    auto row = bench.measure(job.name, job.gradient, job.request);
    progress.clear();
    if (!row.is_ok()) {
      code = fail(row.status(), 1);
      continue;
    }
    rows.push_back(std::move(row).value());
    fmt::print("{}\n", to_line(rows.back()));
    std::fflush(stdout);
    files.write(rows);
  }
  print_summary(bench.facts(), rows);
  for (const auto& peer : peers) {
    if (!peer->lost()) continue;
    print_error("retrograd bench: lost {}: {}\n", peer->name(), peer->why_lost());
    code = 1;
  }
  return files.status().is_ok() ? code : fail(files.status(), 1);
}

}  // namespace retrograd::tools
