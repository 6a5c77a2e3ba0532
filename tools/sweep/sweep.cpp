// SPDX-License-Identifier: Apache-2.0
// `retrograd sweep`: drawn problems against the machine, the other implementations and the peers.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/print_error.h"
#include "tools/sweep/figures.h"

namespace retrograd::tools {
namespace {

int fail(const Status& status) {
  print_error("retrograd sweep: {}\n", status.message());
  return status.code() == Code::kInvalidArgument ? 2 : 1;
}

}  // namespace

int sweep(const SweepOptions& options) {
  // Written as it goes: a run that is stopped has still measured something.
  std::ofstream csv, json, html;
  const auto open = [](std::ofstream& file, const char* option, const std::string& name) {
    if (!name.empty()) file.open(name);
    return name.empty() || file
               ? Status::ok()
               : Status(Code::kInvalidArgument, fmt::format("{}: '{}' cannot be written", option, name));
  };
  if (const Status opened = open(csv, "--csv", options.csv); !opened.is_ok()) return fail(opened);
  if (const Status opened = open(json, "--json", options.json); !opened.is_ok()) return fail(opened);
  if (const Status opened = open(html, "--html", options.html); !opened.is_ok()) return fail(opened);
  if (csv.is_open()) csv << sweep_csv_header();
  const auto result = measure_sweep(options, [&](const SweepFigure& figure) {
    if (csv.is_open()) csv << sweep_csv_rows(options, figure) << std::flush;
  });
  if (!result.is_ok()) return fail(result.status());
  const std::vector<SweepFigure>& figures = result.value().figures;
  if (json.is_open()) json << sweep_json(options, result.value()).dump(1) << '\n';
  if (html.is_open()) html << sweep_page(options, result.value());
  fmt::print("seed {}, {} problems, {} figures, {}", options.seed, options.count, figures.size(),
             options.device);
  for (const PeerFacts& peer : result.value().peers) fmt::print("; {} {}", peer.name, peer.version);
  fmt::print("\n{}", sweep_summary(options, figures));
  if (csv.is_open() && !csv) return fail({Code::kInternal, "--csv: the disk is full"});
  if (html.is_open() && !html.flush()) return fail({Code::kInternal, "--html: the disk is full"});
  return result.value().failures == 0 ? 0 : 1;
}

}  // namespace retrograd::tools
