// SPDX-License-Identifier: Apache-2.0
// The subcommands of the program: their options, as main.cpp fills them in from the command line. Each
// returns the exit code: 0 all is well, 1 a problem was refused or failed, 2 the command line or a file is
// wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/problems/problems.h"

namespace retrograd::tools {

struct BenchOptions {
  ProblemSource problems;  // none: a short list of our own
  std::vector<std::string> passes{"all"};
  double seconds = 0.5;  // a row, for us and for each peer
  bool first_call = false;
  bool calls = false;                 // bench_calls instead
  std::vector<std::string> values;    // bench_values instead: finite, one-inf, all-nan
  bool every_implementation = false;  // bench_implementations instead
  std::string device = "cpu";         // or cuda
  std::vector<std::string> peers;     // commands
  std::string json, csv;              // files to write
};
int bench(const BenchOptions& options);
// Whole calls through the C interfaces, and what of their time is the library's own. Problems and seconds
// count.
int bench_calls(const BenchOptions& options);

// Calls on operands that are not finite, relative to the same on finite ones.
int bench_values(const BenchOptions& options);

// Every implementation that takes a pass, and how much slower than the fastest the chosen one is.
int bench_implementations(const BenchOptions& options);

struct SweepOptions {
  uint64_t seed = 1;
  int64_t count = 100;                             // problems
  std::string device = "cpu";                      // or cuda
  std::string dtype;                               // empty: as drawn
  int math_mode = 0;                               // cubeMathType of convolutions
  std::vector<std::string> passes{"i", "w", "b"};  // or all: one call
  std::string layout;                              // plain or channels-last; empty: as drawn
  std::string family;                              // draws of this family only; empty: of all
  double seconds = 0.02;                           // a figure
  double gflop = 0;                // a problem has at most that many; 0: 1 on a CPU, 40 on a GPU
  std::vector<std::string> peers;  // commands
  bool every = false;              // every implementation, not only the chosen one
  bool forward = false;            // forward problems instead of backward ones
  bool speed_up = false;           // with one thread, too, in turn
  std::string json, csv, html;     // files to write
};
int sweep(const SweepOptions& options);

struct TuneOptions {
  uint64_t seed = 1;
  int64_t count = 200;         // problems
  std::string device = "cpu";  // or cuda
  double seconds = 0.02;       // a figure
  double gflop = 0;            // as of a sweep
  std::string out;             // the file to write; empty: standard output
  // Figures of earlier sweeps (--csv) instead of new ones, and the machines that they are of: one for each
  // file, or one for all.
  std::vector<std::string> from, machines;
};
int tune(const TuneOptions& options);

struct CheckCommandOptions {
  ProblemSource problems;
  bool all_candidates = false;    // every one that accepts a pass, not only the chosen one
  bool full = false;              // every element, however long its sums take
  int64_t products = 20'000'000;  // that the sums of a result may take before it is sampled
  uint64_t seed = 1;
  std::string device = "cpu";  // or cuda
};
// 1 also when a result is wrong.
int check(const CheckCommandOptions& options);

struct ExplainOptions {
  std::string problem;
  std::string rules;           // a product whose rules are judged and followed, or "all"; empty: none
  std::string machine;         // a name of base/machine.h; empty: what is here
  std::string device = "cpu";  // or cuda
};
int explain(const ExplainOptions& options);

int info();

}  // namespace retrograd::tools
