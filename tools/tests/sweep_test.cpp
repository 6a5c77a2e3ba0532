// SPDX-License-Identifier: Apache-2.0
// Sweeps: the same problems for the same seed, rows that can be read again, and who is chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engines/cost.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "runtime/foreign_threads.h"
#include "tools/measure/operand_memory.h"
#include "tools/sweep/figures.h"

namespace retrograd::tools {
namespace {

runtime::Device& cpu() { return *runtime::find_device(runtime::DeviceKind::kCpu, 0); }

SweepOptions tiny_sweep() {
  SweepOptions options;
  options.seed = 5;
  options.count = 4;
  options.gflop = 0.0005;
  options.seconds = 0.0005;
  options.every = true;
  return options;
}

std::vector<std::string> texts_of(const SweepOptions& options) {
  std::vector<std::string> texts;
  const auto problems = sweep_problems(options);
  for (const SweepProblem& problem : problems.value()) texts.push_back(to_text(problem.request));
  return texts;
}

std::vector<std::string> split(const std::string& text, char sign) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, sign);) parts.push_back(part);
  return parts;
}

TEST(SweepTest, SameProblemsForASeed) {
  SweepOptions options;
  options.count = 60;
  const auto first = texts_of(options);
  ASSERT_EQ(first.size(), 60U);
  EXPECT_EQ(first, texts_of(options));
  options.count = 20;
  const auto fewer = texts_of(options);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), first.begin()));
  options.seed = 2;
  EXPECT_NE(fewer, texts_of(options));
}

TEST(SweepTest, ProblemsKeepWithinTheBoundAndAreOfEveryFamily) {
  SweepOptions options;
  options.count = 300;
  options.gflop = 0.1;
  std::set<std::string> families;
  const auto problems = sweep_problems(options);
  for (const SweepProblem& drawn : problems.value()) {
    families.insert(drawn.family);
    // Both gradients of a convolution and a little for its bias.
    EXPECT_LE(work_of(problem::judge(drawn.request).value()).operations, 0.11e9) << to_text(drawn.request);
  }
  EXPECT_EQ(families, (std::set<std::string>{"dense", "depthwise", "grouped", "pool", "stem_or_patches",
                                             "tiny", "transposed"}));
}

TEST(SweepTest, TypesAndMathModeAsAsked) {
  SweepOptions options;
  options.count = 20;
  options.dtype = "f16";
  options.math_mode = 1;
  for (const std::string& text : texts_of(options)) {
    EXPECT_NE(text.find("dtype=f16"), std::string::npos) << text;
    EXPECT_EQ(text.starts_with("conv"), text.find("math=1") != std::string::npos) << text;
  }
  options.dtype = "f33";
  EXPECT_EQ(sweep_problems(options).status().code(), Code::kInvalidArgument);
}

TEST(SweepTest, ForwardProblemsWhereAskedFor) {
  SweepOptions options;
  options.count = 40;
  for (const bool forward : {false, true}) {
    options.forward = forward;
    for (const std::string& text : texts_of(options))
      EXPECT_EQ(text.find(" forward=1") != std::string::npos, forward) << text;
  }
}

TEST(SweepTest, RowsCanBeReadAgain) {
  const SweepOptions options = tiny_sweep();
  std::string csv;
  const auto result =
      measure_sweep(options, [&](const SweepFigure& figure) { csv += sweep_csv_rows(options, figure); });
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(result.value().failures, 0);
  const std::vector<SweepFigure>& figures = result.value().figures;
  ASSERT_GE(figures.size(), 4U);
  const size_t columns = split(sweep_csv_header(), ',').size();
  std::map<std::string, int> chosen;
  for (const std::string& line : split(csv, '\n')) {
    const auto cells = split(line, ',');
    ASSERT_EQ(cells.size(), columns) << line;
    EXPECT_EQ(cells[0], "5");
    EXPECT_GT(std::stod(cells[6]), 0) << line;
    EXPECT_GT(std::stod(cells[7]), 0) << line;
    EXPECT_GT(std::stod(cells[13]), 0) << line;  // the largest operand
    EXPECT_EQ(cells[14], "") << line;            // nobody asked for one thread
    const auto request = problem::parse_request(cells.back());
    ASSERT_TRUE(request.is_ok()) << line;
    EXPECT_EQ(to_text(request.value()), cells.back());
    chosen[cells.back()] += cells[5] == "1" ? 1 : 0;
  }
  EXPECT_EQ(chosen.size(), figures.size());
  for (const auto& [text, count] : chosen) EXPECT_EQ(count, 1) << text;
  const auto json = sweep_json(options, result.value());
  EXPECT_EQ(json["figures"].size(), figures.size());
  const std::string summary = sweep_summary(options, figures);
  EXPECT_NE(summary.find("regret"), std::string::npos);
  EXPECT_NE(summary.find("workspace / its bound"), std::string::npos);
  EXPECT_EQ(summary.find("worst workspace"), std::string::npos);  // all keep it
}

TEST(SweepTest, WrongPassIsRefused) {
  SweepOptions options = tiny_sweep();
  options.passes = {"f"};
  EXPECT_EQ(measure_sweep(options, [](const SweepFigure&) {}).status().code(), Code::kInvalidArgument);
}

TEST(SweepTest, WholeCallsAreOfEveryGradientThatIsAskedFor) {
  SweepOptions options = tiny_sweep();
  options.count = 30;
  options.passes = {"w", "all"};
  options.peers = {"sh " RETROGRAD_SOURCE_DIR "/tools/tests/echo_peer.sh"};
  const auto result = measure_sweep(options, [](const SweepFigure&) {});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  ASSERT_EQ(result.value().peers.size(), 1U);
  EXPECT_EQ(result.value().peers[0].name, "echo");
  const auto drawn = sweep_problems(options);
  const auto columns = split(sweep_csv_header(), ',');
  EXPECT_EQ(columns[columns.size() - 3], "peer");
  EXPECT_EQ(columns[columns.size() - 2], "peer_us");
  std::set<int64_t> whole, alone;
  for (const SweepFigure& figure : result.value().figures) {
    ASSERT_EQ(figure.peers.size(), 1U);
    // Problems that ask for one gradient only are timed once, under the name that comes first.
    const auto request = with_gradient(drawn.value()[static_cast<size_t>(figure.index)].request,
                                       *gradient_from_name(figure.gradient));
    const auto problem = problem::judge(request.value()).value();
    const std::string chosen = figure.times.chosen().name;
    if (problem.passes.size() == 1) {
      alone.insert(figure.index);
      EXPECT_EQ(chosen.find(' '), std::string::npos) << chosen;
      continue;
    }
    whole.insert(figure.index);
    EXPECT_EQ(figure.gradient, "all");
    EXPECT_EQ(figure.times.pass, "all");
    EXPECT_EQ(figure.times.rows.size(), 1U);
    EXPECT_EQ(chosen, plan::make_plan(problem, cpu(), "test").value()->describe());
    EXPECT_DOUBLE_EQ(figure.times.work.operations, work_of(problem).operations);
    double predicted = 0;
    for (const problem::Pass& pass : problem.passes)
      predicted += plan::judge(engines::candidates(cpu().kind()), pass, engines::machine_of(cpu()))
                       .front()
                       .microseconds;
    EXPECT_DOUBLE_EQ(figure.times.chosen().predicted, predicted);
    const std::string row = sweep_csv_rows(options, figure);
    EXPECT_NE(row.find(",all," + chosen + ",1,"), std::string::npos) << row;
    // The echo's microsecond, or nothing where it declines.
    const auto cells = split(row, ',');
    ASSERT_EQ(cells.size(), columns.size()) << row;
    const bool taken = figure.peers[0].declined.empty();
    EXPECT_EQ(cells[columns.size() - 3], taken ? "echo" : "") << row;
    EXPECT_EQ(cells[columns.size() - 2], taken ? "1.000" : "") << row;
  }
  EXPECT_GT(whole.size(), 5U);
  EXPECT_GT(alone.size(), 5U);
  const std::string json = sweep_json(options, result.value()).dump();
  EXPECT_NE(json.find("\"peers\":[{\"name\":\"echo\",\"version\":\"1 a peer of tests"), std::string::npos);
}

TEST(SweepTest, LayoutAndFamilyAsAsked) {
  SweepOptions options;
  options.count = 40;
  options.layout = "plain";
  for (const std::string& text : texts_of(options)) EXPECT_EQ(text.find('@'), std::string::npos) << text;
  options.layout = "channels-last";
  const auto texts = texts_of(options);
  EXPECT_GT(std::count_if(texts.begin(), texts.end(), [](const auto& t) { return t.find('@') != t.npos; }),
            30);
  options.family = "pool";
  EXPECT_EQ(texts_of(options).size(), 40U);
  for (const std::string& text : texts_of(options)) EXPECT_TRUE(text.starts_with("avgpool")) << text;
  options.family = "pooling";
  EXPECT_EQ(sweep_problems(options).status().code(), Code::kInvalidArgument);
  options.family = "";
  options.layout = "nhwc";
  EXPECT_EQ(sweep_problems(options).status().code(), Code::kInvalidArgument);
}

TEST(SweepTest, WorstAreSortedByRegret) {
  SweepOptions options;
  options.every = true;
  std::vector<SweepFigure> figures(3);
  const double slower[] = {1, 3, 2};
  for (size_t i = 0; i < figures.size(); ++i) {
    figures[i].family = "dense";
    figures[i].problem = "problem" + std::to_string(i);
    figures[i].roofline = 0.5;
    figures[i].times.rows.resize(2);
    ImplementationTime& chosen = figures[i].times.rows[0];
    chosen.name = "a";
    chosen.chosen = true;
    chosen.seconds = 1e-3 * slower[i];
    figures[i].times.rows[1].name = "b";
    figures[i].times.rows[1].seconds = 1e-3;
  }
  const std::string text = sweep_summary(options, figures);
  const std::string worst = text.substr(text.find("worst regret"));
  EXPECT_LT(worst.find("\"problem1\""), worst.find("\"problem2\""));
  EXPECT_EQ(worst.find("\"problem0\""), std::string::npos);  // nothing to regret
  EXPECT_NE(worst.find("3.000  \"problem1\"  , chosen a, fastest b"), std::string::npos) << worst;
}

TEST(SweepTest, WorkspaceIsThatOfThePlan) {
  SweepOptions options = tiny_sweep();
  options.count = 20;
  options.every = false;
  options.passes = {"w", "all"};
  const auto result = measure_sweep(options, [](const SweepFigure&) {});
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  for (const SweepFigure& figure : result.value().figures) {
    const auto problem = problem::judge(problem::parse_request(figure.problem).value()).value();
    EXPECT_EQ(figure.times.chosen().workspace,
              plan::make_plan(problem, cpu(), "test").value()->workspace_bytes());
    double largest = 0;
    for (int i = 0; i < problem::kOperandCount; ++i)
      if (const auto operand = static_cast<problem::Operand>(i); touches(problem, operand))
        largest = std::max(largest, static_cast<double>(problem.facts(operand).end_byte -
                                                        problem.facts(operand).lowest_byte));
    EXPECT_EQ(figure.times.largest_operand, largest) << figure.problem;
    EXPECT_LE(figure.workspace_share(), 1) << figure.problem;
  }
}

TEST(SweepTest, OneThreadTakesTurns) {
  SweepOptions options = tiny_sweep();
  options.every = false;
  options.speed_up = true;
  std::string csv;
  const auto result =
      measure_sweep(options, [&](const SweepFigure& figure) { csv += sweep_csv_rows(options, figure); });
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  for (const SweepFigure& figure : result.value().figures) EXPECT_GT(figure.one_thread_seconds, 0);
  for (const std::string& line : split(csv, '\n')) EXPECT_GT(std::stod(split(line, ',')[14]), 0) << line;
  EXPECT_EQ(runtime::foreign_threads(), nullptr);  // our own threads run loops again
  std::vector<SweepFigure> figures(2);
  for (SweepFigure& figure : figures) {
    figure.family = "dense";
    figure.roofline = 0.5;
    ImplementationTime& chosen = figure.times.rows.emplace_back();
    chosen.chosen = true;
    chosen.seconds = 0.8e-3;
  }
  figures[0].one_thread_seconds = 1.2e-3;
  figures[1].one_thread_seconds = 0.9e-3;  // too short to be judged
  EXPECT_DOUBLE_EQ(figures[0].speed_up(), 1.5);
  EXPECT_EQ(figures[1].speed_up(), 0);
  const std::string text = sweep_summary(options, figures);
  EXPECT_NE(text.find("  dense                            1   1.500"), std::string::npos) << text;
  EXPECT_NE(text.find("worst time of one thread / of all\n     1.500"), std::string::npos) << text;
  options.device = "cuda";
  EXPECT_FALSE(measure_sweep(options, [](const SweepFigure&) {}).is_ok());
}

TEST(ImplementationTimesTest, TheChosenOneIsThePlansOwn) {
  const auto problem =
      problem::judge(
          problem::parse_request("conv input=2x16x6x6 weight=16x1x3x3 padding=1x1 groups=16").value())
          .value();
  const auto memory = OperandMemory::make(problem, cpu());
  ASSERT_TRUE(memory.is_ok());
  const auto plan = plan::make_plan(problem, cpu(), "test").value()->describe();
  for (size_t i = 0; i < problem.passes.size(); ++i) {
    const auto times = time_implementations(problem, i, memory.value().bindings(), cpu(),
                                            {.seconds = 0.0005, .every = true});
    ASSERT_TRUE(times.is_ok()) << times.status().message();
    EXPECT_NE(plan.find(times.value().pass + ":" + times.value().chosen().name), std::string::npos) << plan;
    EXPECT_GE(times.value().regret(), 1);
    EXPECT_GE(times.value().rows.size(), 2U);  // the reference takes everything
    for (const ImplementationTime& row : times.value().rows)
      EXPECT_EQ(row.seconds == 0, !row.skipped.empty());
  }
}

TEST(ImplementationTimesTest, PartsMakeUpTheCost) {
  const auto problem =
      problem::judge(problem::parse_request("conv input=2x16x6x6 weight=16x16x3x3 mask=i").value()).value();
  const auto memory = OperandMemory::make(problem, cpu());
  const auto times =
      time_implementations(problem, 0, memory.value().bindings(), cpu(), {.seconds = 0.0005, .every = false})
          .value();
  const Machine& machine = engines::machine_of(cpu());
  const ImplementationTime& row = times.chosen();
  const engines::Efficiency efficiency =
      engines::tuning_for(machine).of(row.name, engines::tuning_case(problem.passes[0]));
  EXPECT_NEAR(row.predicted,
              row.effort.launches * efficiency.start + row.calls * efficiency.call / 1000 +
                  std::max(row.arithmetic / efficiency.arithmetic, row.memory / efficiency.memory),
              1e-9 * row.predicted);
}

}  // namespace
}  // namespace retrograd::tools
