// SPDX-License-Identifier: Apache-2.0
// What follows from measured times, and its forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/bench/report.h"

namespace retrograd::tools {
namespace {

BenchFacts facts() {
  BenchFacts facts;
  facts.peers = {{"one", "1.0"}, {"two", "2.0"}};
  return facts;
}

// 100 operations and 30 bytes in half a second, on a machine of 400 operations and 80 bytes a second.
BenchRow row(double one, double two) {
  BenchRow row;
  row.name = "a,b";
  row.pass = "i";
  row.work = {100, 30};
  row.seconds = 0.5;
  row.peak = 400;
  row.copy = 80;
  row.peers = {{"one", one, "plain", one > 0 ? "" : "no such type"},
               {"two", two, "plain", two > 0 ? "" : "no such type"}};
  return row;
}

TEST(BenchReportTest, PerCentOfTheLimits) {
  const BenchRow r = row(1, 2);
  EXPECT_DOUBLE_EQ(r.of_peak(), 50);
  EXPECT_DOUBLE_EQ(r.of_copy(), 75);
  EXPECT_DOUBLE_EQ(r.of_roofline(), 75);
  EXPECT_EQ(r.best_peer()->name, "one");
  EXPECT_EQ(row(0, 2).best_peer()->name, "two");
  EXPECT_EQ(row(0, 0).best_peer(), nullptr);
}

TEST(BenchReportTest, SummaryCountsSlowRows) {
  const auto all = summarize(facts(), {row(1, 2), row(0.25, 0), row(0.4, 1)});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].rows, 3);
  EXPECT_NEAR(all[0].geometric_mean, std::cbrt(2 * 0.5 * 0.8), 1e-12);
  EXPECT_EQ(all[0].below, 2);
  EXPECT_EQ(all[1].rows, 2);
  EXPECT_EQ(all[1].below, 0);
  EXPECT_EQ(all[2].peer, "best");
  EXPECT_EQ(all[2].rows, 3);
}

TEST(BenchReportTest, JsonHoldsTheRow) {
  const auto json = to_json(facts(), {row(1, 0)});
  const auto again = nlohmann::json::parse(json.dump());
  const auto& first = again.at("rows").at(0);
  EXPECT_DOUBLE_EQ(first.at("ms").get<double>(), 500);
  EXPECT_DOUBLE_EQ(first.at("roofline_percent").get<double>(), 75);
  EXPECT_DOUBLE_EQ(first.at("best_ratio").get<double>(), 2);
  EXPECT_EQ(first.at("peers").at(1).at("declined"), "no such type");
  EXPECT_EQ(again.at("summary").size(), 2U);
}

TEST(BenchReportTest, CsvRowsHaveAllCells) {
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  EXPECT_EQ(commas(csv_header(facts())) + 1, commas(to_csv(facts(), row(1, 0))));  // one inside the name
  EXPECT_EQ(to_csv(facts(), row(1, 0)).substr(0, 6), "\"a,b\",");
}

}  // namespace
}  // namespace retrograd::tools
