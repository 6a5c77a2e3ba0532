// SPDX-License-Identifier: Apache-2.0
// The predicted time of an implementation for a pass, in microseconds:
//
// clang-format off
//   launches × start + calls ÷ threads × call + max(operations ÷ (peak × arithmetic), bytes ÷ (bandwidth × memory))
// clang-format on
//
// plus the cost of the part that it leaves to another implementation (Candidate::rest). CPU costs are for two
// threads. Operations, bytes, launches and calls come from the implementation (engine.h), the peaks from the
// machine, the efficiencies from tuning/, where `retrograd tune` measured them.
#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engines/engine.h"

namespace retrograd::engines {

struct Efficiency {
  double arithmetic = 0.5;  // of the machine's peak
  double memory = 0.5;      // of its copy bandwidth
  double start = 1;         // microseconds a launch
  double call = 0;          // nanoseconds a call
};

// The case of a pass: what it computes, in how wide a type, and whether channels lie side by side, such as
// "grad_weight/f16/nhwc".
std::string_view tuning_case(const problem::Pass& pass);

// A table of efficiencies: lines "name arithmetic memory start call", # begins a comment. A name is an
// implementation's, or with a case behind it, "name/case", for the passes of that case.
class Tuning {
 public:
  // The message names line and reason.
  static Result<Tuning> parse(std::string_view text);
  std::string to_text() const;
  void set(std::string_view name, Efficiency efficiency);
  bool has(std::string_view name) const;
  // The lines of implementations alone.
  Tuning without_cases() const;
  // Of an implementation, where its case has no line; the default where it has none, either.
  Efficiency of(std::string_view name) const;
  Efficiency of(std::string_view implementation, std::string_view pass_case) const;

 private:
  struct Line {
    std::string name;  // of an implementation, or of a case
    std::optional<Efficiency> efficiency;
  };
  struct Lines {
    Line all;
    std::vector<Line> cases;
  };
  std::vector<Lines> implementations_;
};

// The table that goes with a machine: the file that RETROGRAD_TUNING names, or the built-in one of its kind.
// A file that cannot be read is warned about once.
const Tuning& tuning_for(const Machine& machine);
// Whether that is the file's.
bool uses_given_tuning();

double cost(const Candidate& candidate, const problem::Pass& pass, const Machine& machine,
            const Tuning& tuning);
// Without what it leaves to another.
double own_cost(const Candidate& candidate, const problem::Pass& pass, const Machine& machine,
                const Efficiency& efficiency);
double cost(const Candidate& candidate, const problem::Pass& pass, const Machine& machine);

// Who takes a pass at the least cost, the first of equals; null: nobody. Not those left out, nor what reduces
// precision: who leaves sums to another answers for their bits.
struct Cheapest {
  const Candidate* candidate = nullptr;
  double microseconds = std::numeric_limits<double>::infinity();
};
Cheapest cheapest(std::span<const Candidate* const> candidates, const problem::Pass& pass,
                  const Machine& machine, std::initializer_list<const Candidate*> left_out = {});

}  // namespace retrograd::engines
