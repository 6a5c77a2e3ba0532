// SPDX-License-Identifier: Apache-2.0
// Entry of the command-line program `retrograd`: its commands, options and help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/machine.h"
#include "tools/commands.h"
#include "tools/print_error.h"

namespace retrograd::tools {
namespace {

constexpr const char* kProblemHelp = R"(
A problem is one line, as RETROGRAD_VERBOSE=call and error messages print it:
  conv input=2x3x10x10 weight=6x3x3x3 stride=1x2 padding=0x1 dilation=2x2
  conv input=2x4x6x6 weight=4x3x3x3 stride=2x2 padding=1x1 output_padding=1x1 transposed=1 dtype=bf16
  conv_tbc input=5x1x2 weight=1x2x2 pad=0
  avgpool input=2x5x77x89 kernel=5x3 stride=4x2 padding=2x1 ceil=1
A tensor is SHAPE[:dtype][@strides]: input=2x3x10x10:f16@300x1x30x3. mask=i, w, b, iw, … asks for some gradients only.
)";

constexpr const char* kBenchExamples = R"(Examples:
  retrograd bench
  retrograd bench "conv input=4x64x56x56 weight=64x64x3x3 padding=1x1" --passes i,w
  retrograd bench --shapes bench/shapes/conv.csv --rows 'dw3|dw5' --passes i,w,b,all --dtype bf16 --threads 1
  retrograd bench --calls "conv input=1x8x8x8 weight=8x8x3x3 padding=1x1"
  retrograd bench --every-implementation "conv input=4x64x28x28 weight=64x1x3x3 padding=1x1 groups=64"
  retrograd bench --values one-inf,all-nan --shapes bench/shapes/conv.csv --passes i,w
  retrograd bench --shapes bench/shapes/conv.csv --peer ./onednn_peer --peer 'python3 torch_peer.py' --json out.json

Each row: median of whole calls, operations (none on padding) and bytes (each tensor once) a second, per cent of
the FMA peak and of the copy bandwidth of the level the tensors live in, both measured with the row, the larger of
the two (roof), workspace, and how many times longer each peer takes.
)";

constexpr const char* kSweepExamples = R"(Examples:
  retrograd sweep --seed 7 --count 50
  retrograd sweep --seed 7 --count 200 --every-implementation --csv figures.csv
  retrograd sweep --count 100 --dtype f32 --passes i,w --peer ./onednn_peer
  retrograd sweep --count 100 --dtype bf16 --layout channels-last --passes all --peer ./onednn_peer
  retrograd sweep --count 200 --passes all --threads 2 --speed-up
  retrograd sweep --device cuda --count 200 --every-implementation --json figures.json

Problems as networks have them, the same ones for the same seed and bounds. Prints percentiles by family of the share
of what the machine can do, of regret (time of the chosen implementation over that of the fastest), of the fastest
peer's time over ours, of the time of one thread over that of all (where one takes a millisecond or more) and, on a
CPU, of the workspace over its bound (1.5 times the largest operand and 8 MB), then the worst twenty as problems to
paste.
)";

constexpr const char* kTuneExamples = R"(Examples:
  retrograd tune --out this_machine.txt && RETROGRAD_TUNING=this_machine.txt ./program
  retrograd tune --count 1000 --seed 9 --out this_machine.txt
  retrograd tune --device cuda --out this_gpu.txt
  retrograd tune --machine h200 --from figures.csv --out h200.txt

Times every implementation on drawn problems and fits what it reaches of the machine's peaks. Prints how far costs are
from what was measured, and regret (time of the chosen implementation over that of the fastest) before and after.
Nothing else should run meanwhile. RETROGRAD_TUNING names the table that programs use instead of the built-in one.
)";

constexpr const char* kCheckExamples = R"(Examples:
  retrograd check "conv input=2x3x10x10 weight=6x3x3x3 stride=2x2"
  retrograd check --shapes bench/shapes/conv.csv --rows '^rnxt' --dtype bf16
  retrograd check --shapes tests/shapes/grouped.txt --all-candidates --full

Every pass, on small integers (results must have the bits of the exact sums) and on random numbers (bounds derived
from type, length and magnitude of the sums: docs/numerics.md), against sums in double. Large results are compared
at a fixed sample of elements. Exit code: 0 all is right, 1 a result is wrong or a problem refused, 2 bad text.
)";

constexpr const char* kExplainExamples = R"(Examples:
  retrograd explain "conv input=2x3x10x10 weight=6x3x3x3 stride=2x2"
  retrograd explain --machine zen3 "conv input=1x64x56x56 weight=64x64x3x3 padding=1x1 dtype=bf16"
  RETROGRAD_CPU_ISA=avx2 retrograd explain "conv input=1x64x56x56 weight=64x64x3x3 padding=1x1 math=1"
  retrograd explain --rules a2 "conv input=1x8x600x600 weight=8x8x3x3 padding=256x1"
  retrograd explain --rules all "conv_tbc input=64x2x8 weight=3x8x8 math=3"

Exit code: 0 legal, 1 refused (by the rules of a product, too), 2 the text is wrong.
)";

constexpr const char* kInfoExamples = R"(Examples:
  retrograd info
  RETROGRAD_NUM_THREADS=1 retrograd info
)";

// CLI11's own message holds the largest double in full.
CLI::Validator above_zero() {
  return CLI::Validator(
      [](const std::string& text) {
        double value = 0;
        const bool number = CLI::detail::lexical_cast(text, value);
        return number && value > 0 && std::isfinite(value)
                   ? ""
                   : fmt::format("'{}' is not a number above 0", text);
      },
      "");
}

// CLI11 takes -1 for the largest number.
void add_seed(CLI::App& command, uint64_t& seed, const char* description) {
  const auto problem = [](const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? "" : fmt::format("'{}' is not a whole number from 0 to {}", text, UINT64_MAX);
  };
  command.add_option("--seed", seed, description)
      ->check(CLI::Validator(problem, ""))
      ->capture_default_str()
      ->type_name("N");
}

void add_threads(CLI::App& command, int& threads) {
  command
      .add_option("--threads", threads, "Threads of the pool (default: RETROGRAD_NUM_THREADS, or one a core)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
}

// Type, cubeMathType and layout of every problem.
template <class Options>
void add_forms(CLI::App& command, Options& options) {
  command.add_option("--dtype", options.dtype, "Every tensor of this type: f32, f16, bf16, hif8, e4m3")
      ->type_name("TYPE");
  command.add_option("--math", options.math_mode, "cubeMathType of every convolution, 0 to 3")
      ->check(CLI::Range(0, 3))
      ->type_name("N");
  command
      .add_option("--layout", options.layout,
                  "Every tensor and weight plain or channels-last (default: as it is)")
      ->type_name("LAYOUT");
}

void add_passes(CLI::App& command, std::vector<std::string>& passes) {
  command
      .add_option(
          "--passes", passes,
          "What is timed by itself: i, w, b (one gradient), all (what the problem asks for, in one call)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("i,w,b,all");
}

void add_source(CLI::App& command, ProblemSource& source) {
  command.add_option("problem", source.texts, "Problems, each in quotes");
  command
      .add_option("--shapes", source.files,
                  "File of problems: a line each, or a table such as bench/shapes/conv.csv")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command
      .add_option("--rows", source.rows,
                  "Only rows of the files whose name holds a match; signs: . [a-z] ( ) | * + ? ^ $ \\")
      ->type_name("PATTERN");
  add_forms(command, source);
}

void add_device(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "Where it runs: cpu, or the first NVIDIA GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str()
      ->type_name("cpu|cuda");
}

void add_peers(CLI::App& command, std::vector<std::string>& peers) {
  command.add_option("--peer", peers, "Program that times the same (docs/how_to.md); repeatable")
      ->allow_extra_args(false)
      ->type_name("COMMAND");
}

// What sweep and tune draw, and for how long they time it.
template <class Options>
void add_draws(CLI::App& command, Options& options) {
  add_seed(command, options.seed, "Of the problems");
  command.add_option("--count", options.count, "How many problems")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str()
      ->type_name("N");
  add_device(command, options.device);
  command.add_option("--seconds", options.seconds, "Time a figure")
      ->check(above_zero())
      ->capture_default_str()
      ->type_name("S");
  command
      .add_option("--gflop", options.gflop,
                  "Most operations of a problem, in 10^9 (default: 1 on a CPU, 40 on a GPU)")
      ->check(above_zero())
      ->type_name("X");
}

int run(int argc, char** argv) {
  CLI::App app("Looks into the operators of libretrograd", "retrograd");
  app.footer(kProblemHelp);
  app.set_version_flag("--version", "retrograd " RETROGRAD_VERSION);
  app.require_subcommand(1);
  int threads = 0;

  BenchOptions bench_options;
  CLI::App& bench_command =
      *app.add_subcommand("bench", "Time problems against the machine's limits and peers");
  bench_command.footer(std::string(kBenchExamples) + kProblemHelp);
  add_source(bench_command, bench_options.problems);
  add_threads(bench_command, threads);
  add_passes(bench_command, bench_options.passes);
  bench_command.add_option("--seconds", bench_options.seconds, "Time a row, for us and for each peer")
      ->check(above_zero())
      ->capture_default_str()
      ->type_name("S");
  bench_command.add_flag(
      "--first-call", bench_options.first_call,
      "Also the very first call, planning included, relative to the median and to later calls that plan "
      "again");
  CLI::Option* calls = bench_command.add_flag(
      "--calls", bench_options.calls,
      "Instead: convolutions through both C interfaces, part by part, and what is not arithmetic");
  CLI::Option* values = bench_command
                            .add_option("--values", bench_options.values,
                                        "Instead: how many times longer a call takes where one operand holds "
                                        "an infinity, or nothing but NaN")
                            ->delimiter(',')
                            ->allow_extra_args(false)
                            ->type_name("finite,one-inf,all-nan")
                            ->excludes(calls);
  add_peers(bench_command, bench_options.peers);
  bench_command.add_option("--json", bench_options.json, "Write everything there")->type_name("FILE");
  bench_command
      .add_option("--csv", bench_options.csv,
                  "Write the rows there, those of every implementation as sweep does")
      ->type_name("FILE");
  CLI::Option* every = bench_command.add_flag(
      "--every-implementation", bench_options.every_implementation,
      "Instead: every implementation that takes a pass, its time next to its predicted cost, and regret");
  every->excludes(calls)->excludes(values)->excludes(bench_command.get_option("--first-call"));
  for (const char* other : {"--peer", "--json"}) bench_command.get_option(other)->excludes(every);
  for (const char* other : {"--peer", "--json", "--csv"})
    bench_command.get_option(other)->excludes(calls)->excludes(values);
  add_device(bench_command, bench_options.device);
  bench_command.get_option("--device")->excludes(calls);  // the interfaces number devices themselves

  SweepOptions sweep_options;
  CLI::App& sweep_command =
      *app.add_subcommand("sweep", "Time drawn problems: percentiles, regret, ratio to peers, the worst");
  sweep_command.footer(kSweepExamples);
  add_draws(sweep_command, sweep_options);
  add_forms(sweep_command, sweep_options);
  add_passes(sweep_command, sweep_options.passes);
  sweep_command.add_option("--family", sweep_options.family, "Problems of one family, such as pool, only")
      ->type_name("NAME");
  add_threads(sweep_command, threads);
  add_peers(sweep_command, sweep_options.peers);
  sweep_command.add_flag("--every-implementation", sweep_options.every,
                         "Every implementation that takes a pass, not only the one that is chosen");
  sweep_command.add_flag("--forward", sweep_options.forward, "Forward problems instead of backward ones");
  sweep_command.add_flag("--speed-up", sweep_options.speed_up,
                         "Every figure with one thread, too, in turn; a CPU's");
  sweep_command.add_option("--json", sweep_options.json, "Write everything there")->type_name("FILE");
  sweep_command
      .add_option("--html", sweep_options.html,
                  "Write a page with histograms and a table to sort and filter; it needs no network")
      ->type_name("FILE");
  sweep_command.add_option("--csv", sweep_options.csv, "A row for each implementation of a pass there")
      ->type_name("FILE");

  TuneOptions tune_options;
  CLI::App& tune_command =
      *app.add_subcommand("tune", "Measure what implementations reach here: a table for RETROGRAD_TUNING");
  tune_command.footer(kTuneExamples);
  add_draws(tune_command, tune_options);
  add_threads(tune_command, threads);
  tune_command
      .add_option("--from", tune_options.from, "Figures of earlier sweeps (sweep --csv) instead of new ones")
      ->type_name("FILE");
  tune_command
      .add_option("--machine", tune_options.machines,
                  "The machine that those figures are of, once for all files or for each")
      ->type_name("NAME");
  tune_command.add_option("--out", tune_options.out, "Write the table there (default: standard output)")
      ->type_name("FILE");

  CheckCommandOptions check_options;
  CLI::App& check_command = *app.add_subcommand("check", "Judge results against sums in double");
  check_command.footer(std::string(kCheckExamples) + kProblemHelp);
  add_source(check_command, check_options.problems);
  add_threads(check_command, threads);
  check_command.add_flag("--all-candidates", check_options.all_candidates,
                         "Every engine that accepts the pass, not only the one that is chosen");
  check_command
      .add_option("--products", check_options.products,
                  "Products in double that a result may take before it is sampled")
      ->check(above_zero())
      ->capture_default_str()
      ->type_name("N");
  check_command.add_flag("--full", check_options.full, "Every element of large results too");
  add_seed(check_command, check_options.seed, "Of data and sample");
  add_device(check_command, check_options.device);

  ExplainOptions explain_options;
  CLI::App& explain_command = *app.add_subcommand(
      "explain", "Is it legal, which engine takes which pass and how, why the others do not");
  explain_command.footer(std::string(kExplainExamples) + kProblemHelp);
  explain_command.add_option("problem", explain_options.problem, "A problem in quotes")->required();
  explain_command
      .add_option("--rules", explain_options.rules,
                  "Every rule of a product that the problem breaks; all: a table of rules and products")
      ->check(CLI::IsMember({"a2", "a3", "910_95", "training", "all"}))
      ->type_name("PRODUCT");
  add_device(explain_command, explain_options.device);
  explain_command
      .add_option("--machine", explain_options.machine,
                  fmt::format("Plan for another machine: {}", fmt::join(machine_names(), ", ")))
      ->excludes(explain_command.get_option("--device"))
      ->type_name("NAME");
  add_threads(explain_command, threads);

  CLI::App& info_command =
      *app.add_subcommand("info", "Version, machine, libraries and settings: what a bug report needs");
  info_command.footer(kInfoExamples);

  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    print_error("retrograd: '{}' is not a command, expected one of {}\n", argv[1], fmt::join(names, ", "));
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // prints the help, or what is wrong
  }
  // The library reads its settings once, at first use: not yet.
  if (threads > 0) setenv("RETROGRAD_NUM_THREADS", std::to_string(threads).c_str(), 1);
  if (bench_command.parsed()) {
    if (bench_options.calls) return bench_calls(bench_options);
    if (bench_options.every_implementation) return bench_implementations(bench_options);
    return bench_options.values.empty() ? bench(bench_options) : bench_values(bench_options);
  }
  if (sweep_command.parsed()) return sweep(sweep_options);
  if (tune_command.parsed()) return tune(tune_options);
  if (check_command.parsed()) return check(check_options);
  if (info_command.parsed()) return info();
  return explain(explain_options);
}

}  // namespace
}  // namespace retrograd::tools

int main(int argc, char** argv) {
  using retrograd::tools::print_error;
  int code = 1;
  try {
    code = retrograd::tools::run(argc, argv);
  } catch (const std::exception& error) {
    // Printing throws where stdout cannot be written.
    if (std::ferror(stdout) == 0) print_error("retrograd: {}\n", error.what());
  }
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  print_error("retrograd: standard output cannot be written: {}\n", std::strerror(errno));
  return code == 0 ? 1 : code;
}
