// SPDX-License-Identifier: Apache-2.0
// Prints rows. A ratio is the peer's time over ours: above 1 we are faster.
#include "tools/bench/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace retrograd::tools {
namespace {

using nlohmann::json;

std::string human_bytes(size_t bytes) {
  if (bytes < 10240) return fmt::format("{} B", bytes);
  const double kib = static_cast<double>(bytes) / 1024;
  return kib < 10240 ? fmt::format("{:.0f} KiB", kib) : fmt::format("{:.1f} MiB", kib / 1024);
}

double ratio(const BenchRow& row, const PeerRow& peer) { return peer.seconds / row.seconds; }

// Commas and quotes inside a cell.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

json to_json(const BenchRow& row) {
  json out = {{"name", row.name},
              {"pass", row.pass},
              {"dtype", row.dtype},
              {"problem", row.problem},
              {"steps", row.steps},
              {"ms", row.seconds * 1e3},
              {"runs", row.runs},
              {"operations", row.work.operations},
              {"bytes", row.work.bytes},
              {"gflops", row.work.operations / row.seconds * 1e-9},
              {"gbs", row.work.bytes / row.seconds * 1e-9},
              {"peak_gflops", row.peak * 1e-9},
              {"peak_percent", row.of_peak()},
              {"copy_level", name_of(row.level)},
              {"copy_gbs", row.copy * 1e-9},
              {"copy_percent", row.of_copy()},
              {"roofline_percent", row.of_roofline()},
              {"workspace_bytes", row.workspace_bytes},
              {"peers", json::array()}};
  if (row.first_call_seconds > 0)
    out["first_call"] = {{"ms", row.first_call_seconds * 1e3},
                         {"planning_ms", row.planning_seconds * 1e3},
                         {"ratio", row.first_call_seconds / row.seconds},
                         {"whole_ms", row.whole_call_seconds * 1e3},
                         {"whole_ratio", row.first_call_seconds / row.whole_call_seconds}};
  for (const PeerRow& peer : row.peers) {
    if (peer.seconds > 0) {
      out["peers"].push_back({{"name", peer.name},
                              {"ms", peer.seconds * 1e3},
                              {"variant", peer.variant},
                              {"ratio", ratio(row, peer)}});
    } else {
      out["peers"].push_back({{"name", peer.name}, {"declined", peer.declined}});
    }
  }
  if (const PeerRow* best = row.best_peer()) {
    out["best_peer"] = best->name;
    out["best_ratio"] = ratio(row, *best);
  }
  return out;
}

RatioSummary summary_of(const std::string& peer, const std::vector<double>& ratios) {
  RatioSummary summary{peer, static_cast<int>(ratios.size()), 0, 0};
  double logarithms = 0;
  for (double each : ratios) {
    logarithms += std::log(each);
    if (each < RatioSummary::kTolerated) ++summary.below;
  }
  if (!ratios.empty()) summary.geometric_mean = std::exp(logarithms / static_cast<double>(ratios.size()));
  return summary;
}

}  // namespace

const PeerRow* BenchRow::best_peer() const {
  const PeerRow* best = nullptr;
  for (const PeerRow& peer : peers)
    if (peer.seconds > 0 && (best == nullptr || peer.seconds < best->seconds)) best = &peer;
  return best;
}

std::string to_line(const BenchRow& row) {
  std::string line = fmt::format(
      "{:>9.{}f} ms {:>7.1f} GFLOP/s {:>6.1f} GB/s {:>4.0f} % of peak {:>4.0f} % of {} {:>4.0f} % roof {:>9}",
      row.seconds * 1e3, row.seconds < 1e-4 ? 5 : 3, row.work.operations / row.seconds * 1e-9,
      row.work.bytes / row.seconds * 1e-9, row.of_peak(), row.of_copy(),
      fmt::format("{:<4}", name_of(row.level)), row.of_roofline(), human_bytes(row.workspace_bytes));
  if (row.first_call_seconds > 0)
    line += fmt::format("  first {:.2f}x, {:.2f}x of planned again", row.first_call_seconds / row.seconds,
                        row.first_call_seconds / row.whole_call_seconds);
  for (const PeerRow& peer : row.peers)
    line += peer.seconds > 0 ? fmt::format("  {} {:.2f}x", peer.name, ratio(row, peer))
                             : fmt::format("  {} -", peer.name);
  return line + fmt::format("  {:<3} {}", row.pass, row.name.empty() ? row.problem : row.name);
}

std::string csv_header(const BenchFacts& facts) {
  std::string line =
      "name,pass,dtype,threads,ms,runs,gflops,gbs,peak_gflops,peak_percent,copy_level,copy_gbs,copy_percent,"
      "roofline_percent,workspace_bytes,first_call_ms,first_call_ratio,first_call_whole_ratio,best_peer,best_"
      "ratio";
  for (const PeerFacts& peer : facts.peers)
    line += fmt::format(",{0}_ms,{0}_ratio,{0}_variant", cell(peer.name));
  return line + ",steps,problem";
}

std::string to_csv(const BenchFacts& facts, const BenchRow& row) {
  std::string line =
      fmt::format("{},{},{},{},{:.6f},{},{:.3f},{:.3f},{:.2f},{:.2f},{},{:.2f},{:.2f},{:.2f},{}",
                  cell(row.name), row.pass, row.dtype, facts.threads, row.seconds * 1e3, row.runs,
                  row.work.operations / row.seconds * 1e-9, row.work.bytes / row.seconds * 1e-9,
                  row.peak * 1e-9, row.of_peak(), name_of(row.level), row.copy * 1e-9, row.of_copy(),
                  row.of_roofline(), row.workspace_bytes);
  line += row.first_call_seconds > 0 ? fmt::format(",{:.6f},{:.3f},{:.3f}", row.first_call_seconds * 1e3,
                                                   row.first_call_seconds / row.seconds,
                                                   row.first_call_seconds / row.whole_call_seconds)
                                     : ",,,";
  const PeerRow* best = row.best_peer();
  line += best != nullptr ? fmt::format(",{},{:.4f}", cell(best->name), ratio(row, *best)) : ",,";
  for (const PeerRow& peer : row.peers)
    line += peer.seconds > 0
                ? fmt::format(",{:.6f},{:.4f},{}", peer.seconds * 1e3, ratio(row, peer), cell(peer.variant))
                : ",,,";
  return line + fmt::format(",{},{}", cell(row.steps), cell(row.problem));
}

json to_json(const BenchFacts& facts, const std::vector<BenchRow>& rows) {
  json out = {{"version", facts.version},
              {"processor", facts.processor},
              {"instruction_set", facts.target},
              {"threads", facts.threads},
              {"seconds_a_row", facts.seconds},
              {"cache_bytes",
               {{"L1", facts.caches.level[0].bytes},
                {"L2", facts.caches.level[1].bytes},
                {"L3", facts.caches.level[2].bytes}}},
              {"peers", json::array()},
              {"rows", json::array()},
              {"summary", json::array()}};
  for (const PeerFacts& peer : facts.peers)
    out["peers"].push_back({{"name", peer.name}, {"version", peer.version}});
  for (const BenchRow& row : rows) out["rows"].push_back(to_json(row));
  for (const RatioSummary& s : summarize(facts, rows))
    out["summary"].push_back({{"peer", s.peer},
                              {"rows", s.rows},
                              {"geometric_mean", s.geometric_mean},
                              {"rows_below", s.below},
                              {"below", RatioSummary::kTolerated}});
  return out;
}

std::vector<RatioSummary> summarize(const BenchFacts& facts, const std::vector<BenchRow>& rows) {
  std::vector<RatioSummary> all;
  const auto add = [&](const std::string& name, const auto& peer_of) {
    std::vector<double> ratios;
    for (const BenchRow& row : rows)
      if (const PeerRow* peer = peer_of(row); peer != nullptr && peer->seconds > 0)
        ratios.push_back(ratio(row, *peer));
    if (!ratios.empty()) all.push_back(summary_of(name, ratios));
  };
  for (size_t i = 0; i < facts.peers.size(); ++i)
    add(facts.peers[i].name, [&](const BenchRow& row) { return &row.peers[i]; });
  if (!facts.peers.empty()) add("best", [](const BenchRow& row) { return row.best_peer(); });
  return all;
}

}  // namespace retrograd::tools
