// SPDX-License-Identifier: Apache-2.0
// Tables of a sweep: CSV, JSON, percentiles and the worst.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sweep_page.h"
#include "tools/measure/percentiles.h"
#include "tools/sweep/figures.h"

namespace retrograd::tools {
namespace {

using nlohmann::json;

constexpr size_t kWorstShown = 20;

// One number a figure, 0 where it has none.
struct Measure {
  const char* name;
  Worst worst;
  double (*of)(const SweepFigure& figure);
};
constexpr Measure kRoofline = {"roofline share", Worst::kSmallest,
                               [](const SweepFigure& f) { return f.roofline; }};
constexpr Measure kRegret = {"regret", Worst::kLargest,
                             [](const SweepFigure& f) { return f.gradient == "all" ? 0 : f.times.regret(); }};
constexpr Measure kRatio = {"time of the best peer / ours", Worst::kSmallest,
                            [](const SweepFigure& f) { return f.ratio(); }};

constexpr Measure kSpeedUp = {"time of one thread / of all", Worst::kSmallest,
                              [](const SweepFigure& f) { return f.speed_up(); }};
constexpr Measure kWorkspace = {"workspace / its bound", Worst::kLargest,
                                [](const SweepFigure& f) { return f.workspace_share(); }};

std::vector<double> values_of(const Measure& measure, const std::vector<SweepFigure>& figures,
                              const std::string& family) {
  std::vector<double> values;
  for (const SweepFigure& figure : figures)
    if (const double value = measure.of(figure); value > 0 && (family.empty() || figure.family == family))
      values.push_back(value);
  return values;
}

std::vector<std::string> families_of(const std::vector<SweepFigure>& figures) {
  std::vector<std::string> families;
  for (const SweepFigure& figure : figures) families.push_back(figure.family);
  std::sort(families.begin(), families.end());
  families.erase(std::unique(families.begin(), families.end()), families.end());
  return families;
}

std::string table_of(const Measure& measure, const std::vector<SweepFigure>& figures) {
  std::string text = percentiles_header(measure.name) + "\n";
  text += percentiles_line("all", values_of(measure, figures, ""), measure.worst) + "\n";
  for (const std::string& family : families_of(figures))
    text += percentiles_line(family, values_of(measure, figures, family), measure.worst) + "\n";
  return text;
}

std::string worst_of(const Measure& measure, const std::vector<SweepFigure>& figures) {
  const double good =
      measure.worst == Worst::kLargest ? 1.0 : 0.0;  // neither regret nor a bound that is kept
  std::vector<const SweepFigure*> order;
  for (const SweepFigure& figure : figures)
    if (measure.of(figure) > good) order.push_back(&figure);
  std::stable_sort(order.begin(), order.end(), [&](const SweepFigure* a, const SweepFigure* b) {
    return measure.worst == Worst::kSmallest ? measure.of(*a) < measure.of(*b)
                                             : measure.of(*a) > measure.of(*b);
  });
  order.resize(std::min(order.size(), kWorstShown));
  if (order.empty()) return "";
  std::string text = fmt::format("worst {}\n", measure.name);
  for (const SweepFigure* figure : order)
    text +=
        fmt::format("  {:>8.3f}  \"{}\"  {}, chosen {}, fastest {}\n", measure.of(*figure), figure->problem,
                    figure->times.pass, figure->times.chosen().name, figure->times.fastest().name);
  return text;
}

std::vector<Measure> measures_of(const SweepOptions& options) {
  std::vector<Measure> measures = {kRoofline};
  if (options.every) measures.push_back(kRegret);
  if (!options.peers.empty()) measures.push_back(kRatio);
  if (options.speed_up) measures.push_back(kSpeedUp);
  if (options.device == "cpu") measures.push_back(kWorkspace);
  return measures;
}

json to_json(const SweepFigure& figure) {
  json out = {{"index", figure.index},
              {"family", figure.family},
              {"pass", figure.times.pass},
              {"problem", figure.problem},
              {"roofline", figure.roofline},
              {"chosen", figure.times.chosen().name},
              {"fastest", figure.times.fastest().name},
              {"regret", figure.times.regret()},
              {"operations", figure.times.work.operations},
              {"bytes", figure.times.work.bytes},
              {"workspace", figure.times.chosen().workspace},
              {"largest_operand", figure.times.largest_operand},
              {"implementations", json::array()},
              {"peers", json::array()}};
  if (figure.one_thread_seconds > 0) out["one_thread_us"] = figure.one_thread_seconds * 1e6;
  for (const ImplementationTime& row : figure.times.rows) {
    json entry = {{"name", row.name}, {"predicted_us", row.predicted}};
    row.seconds > 0 ? entry["us"] = row.seconds * 1e6 : entry["skipped"] = row.skipped;
    out["implementations"].push_back(std::move(entry));
  }
  for (const PeerRow& peer : figure.peers)
    out["peers"].push_back(peer.seconds > 0 ? json{{"name", peer.name},
                                                   {"us", peer.seconds * 1e6},
                                                   {"variant", peer.variant},
                                                   {"ratio", peer.seconds / figure.times.chosen().seconds}}
                                            : json{{"name", peer.name}, {"declined", peer.declined}});
  return out;
}

}  // namespace

std::string sweep_csv_header() {
  return "seed,index,family,pass,implementation,chosen,measured_us,predicted_us,operations,bytes,launches,"
         "calls,workspace_bytes,largest_operand_bytes,one_thread_us,peer,peer_us,problem\n";
}

// No cell holds a comma or a quote. The fastest peer and the time of one thread stand in every row of a
// figure; their cells are empty where there is none.
std::string sweep_csv_rows(const SweepOptions& options, const SweepFigure& figure) {
  const PeerRow* const peer = figure.fastest_peer();
  const std::string alone =
      figure.one_thread_seconds > 0 ? fmt::format("{:.3f}", figure.one_thread_seconds * 1e6) : "";
  const std::string peer_cells = peer ? fmt::format("{},{:.3f}", peer->name, peer->seconds * 1e6) : ",";
  std::string text;
  for (const ImplementationTime& row : figure.times.rows)
    if (row.seconds > 0)
      text += fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{:.0f},{:.0f},{:g},{:.0f},{},{:.0f},{},{},{}\n",
                          options.seed, figure.index, figure.family, figure.times.pass, row.name,
                          row.chosen ? 1 : 0, row.seconds * 1e6, row.predicted, row.effort.operations,
                          row.effort.bytes, row.effort.launches, row.effort.calls, row.workspace,
                          figure.times.largest_operand, alone, peer_cells, figure.problem);
  return text;
}

json sweep_json(const SweepOptions& options, const SweepResult& result) {
  const std::vector<SweepFigure>& figures = result.figures;
  json out = {{"version", RETROGRAD_VERSION}, {"seed", options.seed},        {"count", options.count},
              {"device", options.device},     {"seconds", options.seconds},  {"peers", json::array()},
              {"figures", json::array()},     {"percentiles", json::array()}};
  for (const PeerFacts& peer : result.peers)
    out["peers"].push_back({{"name", peer.name}, {"version", peer.version}});
  for (const SweepFigure& figure : figures) out["figures"].push_back(to_json(figure));
  std::vector<std::string> families = families_of(figures);
  families.insert(families.begin(), "");
  for (const Measure& measure : measures_of(options))
    for (const std::string& family : families) {
      const std::vector<double> values = values_of(measure, figures, family);
      if (values.empty()) continue;
      json row = {{"of", measure.name},
                  {"family", family.empty() ? "all" : family},
                  {"figures", values.size()},
                  {"worst", percentile(values, measure.worst == Worst::kSmallest ? 0 : 100)},
                  {"geometric_mean", geometric_mean(values)}};
      for (int percent : kPercents) row[std::to_string(percent)] = percentile(values, percent);
      out["percentiles"].push_back(std::move(row));
    }
  return out;
}

std::string sweep_page(const SweepOptions& options, const SweepResult& result) {
  std::string data = sweep_json(options, result).dump();
  // The page's parser ends a script at "</", wherever it stands.
  for (size_t at = data.find("</"); at != std::string::npos; at = data.find("</", at + 1))
    data.replace(at, 2, "<\\/");
  return kPageBeforeData + data + kPageBehindData;
}

std::string sweep_summary(const SweepOptions& options, const std::vector<SweepFigure>& figures) {
  const std::vector<Measure> measures = measures_of(options);
  std::string text;
  for (const Measure& measure : measures) text += table_of(measure, figures);
  // Roofline shares are bad for many reasons; where there is something to compare with, that is shown.
  const bool compared = options.every || !options.peers.empty() || options.speed_up;
  for (size_t i = compared ? 1 : 0; i < measures.size(); ++i) text += worst_of(measures[i], figures);
  return text;
}

}  // namespace retrograd::tools
