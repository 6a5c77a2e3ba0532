// SPDX-License-Identifier: Apache-2.0
// Fits the efficiencies of engines/cost.h to measured times: costs close to what was measured, above all the
// right one the cheapest, and no choice far off.
#pragma once

#include <string>
#include <vector>

#include "engines/cost.h"

namespace retrograd::tools {

// One implementation of a pass. Times in microseconds.
struct FitFigure {
  std::string name;
  double arithmetic = 0, memory = 0;  // at the machine's peaks
  double launches = 1, calls = 0;
  double measured = 0;
  std::vector<FitFigure> rest = {};  // at most one: who computes what this one leaves
  std::string pass_case = {};        // engines::tuning_case of the pass; empty: none
};
struct FitPass {
  std::vector<FitFigure> figures;  // everybody that took it
  std::string problem = {};        // its text, to be shown
};

// The formula of engines::cost, without what is left to another, and with it.
double own_cost(const engines::Efficiency& efficiency, const FitFigure& figure);
double predicted(const engines::Tuning& tuning, const FitFigure& figure);

// The one that a table takes; the pass has figures.
const FitFigure& chosen_by(const engines::Tuning& tuning, const FitPass& pass);
// Its time over that of the fastest: 1 is best.
double regret(const engines::Tuning& tuning, const FitPass& pass);
std::vector<double> regrets(const engines::Tuning& tuning, const std::vector<FitPass>& passes);
double mean_regret(const engines::Tuning& tuning, const std::vector<FitPass>& passes);  // geometric

// How far costs are from what was measured, as a factor: the median over the figures of a name; 0: none.
double typical_error(const engines::Tuning& tuning, const std::vector<FitPass>& passes,
                     const std::string& name);

struct Fit {
  engines::Tuning tuning;  // the table before with the lines of all that was measured replaced
  std::string how;         // in words
};
// Takes what helps on passes that were left out of it, not only on those it was fitted to.
Fit fit(const std::vector<FitPass>& passes, const engines::Tuning& start);

}  // namespace retrograd::tools
