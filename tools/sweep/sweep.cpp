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

Status check_written(const std::ofstream& file, const char* option, const std::string& name, Code otherwise) {
  if (file) return Status::ok();
  return {otherwise, fmt::format("{}: '{}' cannot be written", option, name)};
}

}  // namespace

int sweep(const SweepOptions& options) {
  std::ofstream csv, json, html;
  const auto open = [](std::ofstream& file, const char* option, const std::string& name) {
    if (!name.empty()) file.open(name);
    return check_written(file, option, name, Code::kInvalidArgument);
  };
  const auto open_all = [&] {
    RG_CHECK(open(csv, "--csv", options.csv));
    RG_CHECK(open(json, "--json", options.json));
    RG_CHECK(open(html, "--html", options.html));
    if (csv.is_open()) csv << sweep_csv_header() << std::flush;
    return Status::ok();
  };
  // Written as it goes: a run that is stopped has still measured something.
  const auto result = measure_sweep(
      options,
      [&](const SweepFigure& figure) {
        if (csv.is_open()) csv << sweep_csv_rows(options, figure) << std::flush;
      },
      open_all);
  if (!result.is_ok()) return fail(result.status());
  const std::vector<SweepFigure>& figures = result.value().figures;
  if (json.is_open()) json << sweep_json(options, result.value()).dump(1) << '\n' << std::flush;
  if (html.is_open()) html << sweep_page(options, result.value()) << std::flush;
  fmt::print("seed {}, {} problems, {} figures, {}", options.seed, options.count, figures.size(),
             options.device);
  for (const PeerFacts& peer : result.value().peers) fmt::print("; {} {}", peer.name, peer.version);
  fmt::print("\n{}", sweep_summary(options, figures));
  int code = result.value().failures == 0 ? 0 : 1;
  for (const Status& written : {check_written(csv, "--csv", options.csv, Code::kInternal),
                                check_written(json, "--json", options.json, Code::kInternal),
                                check_written(html, "--html", options.html, Code::kInternal)})
    if (!written.is_ok()) code = fail(written);
  return code;
}

}  // namespace retrograd::tools
