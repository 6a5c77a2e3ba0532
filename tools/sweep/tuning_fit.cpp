// SPDX-License-Identifier: Apache-2.0
// Coordinate descent on the logarithms of the efficiencies: first each implementation for itself, so that its
// costs are right, then all together, so that the choices are. What helps only the passes it was fitted to is
// not taken.
#include "tools/sweep/tuning_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "tools/measure/percentiles.h"

namespace retrograd::tools {
namespace {

using engines::Efficiency;
using engines::Tuning;

constexpr double kFarthest = 3;        // an error beyond e^3 counts no more: an outlier
constexpr double kPrior = 0.003;       // what no figure depends on stays as it was
constexpr double kErrorWeight = 0.05;  // of errors beside regret, when all are fitted together
constexpr double kNear = 0.14;         // a choice that takes 1.15 times as long is not looked at twice
constexpr double kFarWeight = 2;  // of what lies beyond that: one choice of ten times weighs like many of 1.1
constexpr size_t kFewFigures = 5;    // fewer than that tell one factor, not four numbers
constexpr size_t kManyFigures = 30;  // so many of a case, and it has a line of its own
// Steps on a logarithm, coarse ones first.
constexpr double kSteps[] = {1.6, 0.8, 0.4, 0.2, 0.1, 0.05, 0.025};

struct Named;
using Table = std::map<std::string, Named>;

// A figure with the lines of the table that its cost is made of.
struct Link {
  const Efficiency* efficiency;
  const FitFigure* figure;
  std::vector<Link> rest;
};
struct Named {
  Efficiency now, before;
  std::vector<const Link*> figures;
  bool moves = true;
};

double cost(const Link& link) {
  double us = own_cost(*link.efficiency, *link.figure);
  for (const Link& rest : link.rest) us += cost(rest);
  return us;
}

// A coordinate: one of the four numbers, or all of them, faster by that factor.
constexpr int kCoordinates = 5;
Efficiency moved(Efficiency efficiency, int coordinate, double factor) {
  const auto scaled = [](double value, double by) { return std::clamp(value * by, 1e-5, 1e5); };
  const bool all = coordinate == kCoordinates - 1;
  if (coordinate == 0 || all) efficiency.arithmetic = scaled(efficiency.arithmetic, factor);
  if (coordinate == 1 || all) efficiency.memory = scaled(efficiency.memory, factor);
  if (coordinate == 2 || all) efficiency.start = scaled(efficiency.start, 1 / factor);
  if ((coordinate == 3 || all) && efficiency.call > 0) efficiency.call = scaled(efficiency.call, 1 / factor);
  return efficiency;
}

double distance(double a, double b) { return std::abs(std::log(a / b)); }

double error_of(const Named& named) {
  const auto& [now, before, figures, moves] = named;
  double sum = 0;
  for (const Link* link : figures) sum += std::min(kFarthest, distance(cost(*link), link->figure->measured));
  return sum / static_cast<double>(figures.size()) +
         kPrior *
             (distance(now.arithmetic, before.arithmetic) + distance(now.memory, before.memory) +
              distance(now.start, before.start) + (before.call > 0 ? distance(now.call, before.call) : 0));
}

// Steps along every coordinate as long as `objective` falls.
template <class Objective>
bool descend(Efficiency& now, double step, const Objective& objective) {
  double best = objective();
  bool fell = false;
  for (int coordinate = 0; coordinate < kCoordinates; ++coordinate)
    for (const double factor : {std::exp(step), std::exp(-step)})
      while (true) {
        const Efficiency old = now;
        now = moved(old, coordinate, factor);
        const double value = objective();
        if (value >= best - 1e-9) {
          now = old;
          break;
        }
        best = value;
        fell = true;
      }
  return fell;
}

// One factor for all of them, as far as few figures go.
void rescale(Named& named) {
  std::vector<double> factors;
  for (const Link* link : named.figures) factors.push_back(cost(*link) / link->figure->measured);
  named.now = moved(named.now, kCoordinates - 1, percentile(factors, 50));
}

void fit_alone(Named& named) {
  rescale(named);
  if (named.figures.size() < kFewFigures) return;
  const auto objective = [&] { return error_of(named); };
  for (const double step : kSteps)
    while (descend(named.now, step, objective)) {
    }
}

double log_regret(const std::vector<Link>& pass) {
  double cheapest = HUGE_VAL, chosen = 0, fastest = HUGE_VAL;
  for (const Link& link : pass) {
    fastest = std::min(fastest, link.figure->measured);
    if (const double us = cost(link); us < cheapest) {
      cheapest = us;
      chosen = link.figure->measured;
    }
  }
  return std::log(chosen / fastest);
}
double blame_of(const std::vector<Link>& pass) {
  const double regret = log_regret(pass), far = std::max(0.0, regret - kNear);
  return regret + kFarWeight * far * far;
}

// Only passes with a choice count, and only what can be told from several figures moves.
void fit_together(const std::vector<std::vector<Link>>& passes, Table& table) {
  // Only those that an implementation takes part in change with it.
  std::map<const Efficiency*, std::set<const std::vector<Link>*>> choices_of;
  for (const std::vector<Link>& links : passes) {
    if (links.size() < 2) continue;
    for (const Link& link : links) {
      choices_of[link.efficiency].insert(&links);
      for (const Link& rest : link.rest) choices_of[rest.efficiency].insert(&links);
    }
  }
  constexpr int kSweeps = 4;
  for (const double step : kSteps)
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      bool fell = false;
      for (auto& [name, named] : table) {
        const auto& own = choices_of[&named.now];
        if (!named.moves || named.figures.size() < kFewFigures || own.empty()) continue;
        fell |= descend(named.now, step, [&, &named = named] {
          double sum = 0;
          for (const std::vector<Link>* links : own) sum += blame_of(*links);
          return sum / static_cast<double>(own.size()) + kErrorWeight * error_of(named);
        });
      }
      if (!fell) break;
    }
}

// Ways to fit, from the one that can go wrong least.
enum class Way : unsigned char {
  kRescale,     // the choices of before, all costs times one factor
  kFromBefore,  // from there to better choices
  kFromCosts    // from costs that are right to better choices
};

std::string line_of(const FitFigure& figure) {
  return figure.pass_case.empty() ? figure.name : figure.name + "/" + figure.pass_case;
}

Link link_of(const FitFigure& figure, const Tuning& start, Table& table) {
  const std::string name = line_of(figure);
  const auto [line, is_new] = table.try_emplace(name);
  if (is_new) line->second.now = line->second.before = start.of(name);
  Link link{&line->second.now, &figure, {}};
  for (const FitFigure& rest : figure.rest) link.rest.push_back(link_of(rest, start, table));
  return link;
}

Tuning fit_by(Way way, const std::vector<FitPass>& passes, const Tuning& start, bool only_cases = false) {
  Table table;
  std::vector<std::vector<Link>> links;
  for (const FitPass& pass : passes)
    for (auto& own = links.emplace_back(); const FitFigure& figure : pass.figures)
      own.push_back(link_of(figure, start, table));
  std::vector<double> factors;
  for (const std::vector<Link>& pass : links)
    for (const Link& link : pass) {
      table.at(line_of(*link.figure)).figures.push_back(&link);
      factors.push_back(cost(link) / link.figure->measured);
    }
  // What no case's figures tell is left to all figures.
  if (only_cases)
    for (auto& [name, named] : table) named.moves = name.find('/') != std::string::npos;
  // Who leaves the rest to others comes when their costs are right.
  for (const bool leaves_rest : {false, true})
    for (auto& [name, named] : table)
      if (!named.moves) {
        continue;
      } else if (way != Way::kFromCosts && !leaves_rest) {
        named.now = moved(named.now, kCoordinates - 1, percentile(factors, 50));
      } else if (way == Way::kFromCosts && !named.figures.empty() &&
                 named.figures.front()->rest.empty() != leaves_rest) {
        fit_alone(named);
      }
  if (way != Way::kRescale) fit_together(links, table);
  Tuning tuning = start;
  for (const auto& [name, named] : table) tuning.set(name, named.now);
  return tuning;
}

// Regret on passes that a fit has not seen: each of three parts by what the other two tell.
using Fitted = std::function<Tuning(const std::vector<FitPass>&)>;
double unseen_regret(const std::vector<FitPass>& passes, const Fitted& fitted) {
  constexpr size_t kParts = 3;
  double sum = 0;
  for (size_t part = 0; part < kParts; ++part) {
    std::mt19937 random(
        1);  // the gradients of a problem follow each other: every third would be all of a kind
    std::vector<FitPass> seen, unseen;
    for (const FitPass& pass : passes) (random() % kParts == part ? unseen : seen).push_back(pass);
    sum += std::log(mean_regret(fitted(seen), unseen));
  }
  return std::exp(sum / kParts);
}

void for_each_figure(std::vector<FitPass>& passes, const std::function<void(FitFigure&)>& function) {
  const std::function<void(FitFigure&)> with_rest = [&](FitFigure& figure) {
    function(figure);
    for (FitFigure& rest : figure.rest) with_rest(rest);
  };
  for (FitPass& pass : passes)
    for (FitFigure& figure : pass.figures) with_rest(figure);
}
// Figures whose case does not count are left to the implementation's own line.
std::vector<FitPass> with_cases(std::vector<FitPass> passes,
                                const std::function<bool(const std::string&)>& counts) {
  for_each_figure(passes, [&](FitFigure& figure) {
    if (!counts(line_of(figure))) figure.pass_case.clear();
  });
  return passes;
}
std::vector<FitPass> without_cases(const std::vector<FitPass>& passes) {
  return with_cases(passes, [](const std::string&) { return false; });
}
std::vector<FitPass> with_cases_of(const std::vector<FitPass>& passes, const Tuning& table) {
  return with_cases(passes, [&](const std::string& line) { return table.has(line); });
}
std::vector<FitPass> with_many_cases(std::vector<FitPass> passes) {
  std::map<std::string, size_t> met;
  for_each_figure(passes, [&](FitFigure& figure) { ++met[line_of(figure)]; });
  return with_cases(passes, [&](const std::string& line) { return met[line] >= kManyFigures; });
}

}  // namespace

double own_cost(const Efficiency& efficiency, const FitFigure& figure) {
  return figure.launches * efficiency.start + figure.calls * efficiency.call / 1000 +
         std::max(figure.arithmetic / efficiency.arithmetic, figure.memory / efficiency.memory);
}
double predicted(const Tuning& tuning, const FitFigure& figure) {
  double us = own_cost(tuning.of(figure.name, figure.pass_case), figure);
  for (const FitFigure& rest : figure.rest) us += predicted(tuning, rest);
  return us;
}

const FitFigure& chosen_by(const Tuning& tuning, const FitPass& pass) {
  return *std::min_element(
      pass.figures.begin(), pass.figures.end(),
      [&](const FitFigure& a, const FitFigure& b) { return predicted(tuning, a) < predicted(tuning, b); });
}

double regret(const Tuning& tuning, const FitPass& pass) {
  double fastest = HUGE_VAL;
  for (const FitFigure& figure : pass.figures) fastest = std::min(fastest, figure.measured);
  return chosen_by(tuning, pass).measured / fastest;
}

std::vector<double> regrets(const Tuning& tuning, const std::vector<FitPass>& passes) {
  std::vector<double> all;
  for (const FitPass& pass : passes)
    if (!pass.figures.empty()) all.push_back(regret(tuning, pass));
  return all;
}
double mean_regret(const Tuning& tuning, const std::vector<FitPass>& passes) {
  const std::vector<double> all = regrets(tuning, passes);
  return all.empty() ? 1 : geometric_mean(all);
}

double typical_error(const Tuning& tuning, const std::vector<FitPass>& passes, const std::string& name) {
  std::vector<double> errors;
  for (const FitPass& pass : passes)
    for (const FitFigure& figure : pass.figures)
      if (figure.name == name)
        errors.push_back(std::exp(distance(predicted(tuning, figure), figure.measured)));
  return errors.empty() ? 0 : percentile(errors, 50);
}

Fit fit(const std::vector<FitPass>& passes, const Tuning& start) {
  std::vector<FitPass> measured;
  for (const FitPass& pass : passes)
    if (!pass.figures.empty()) measured.push_back(pass);
  if (measured.empty()) return {start, "nothing was measured"};
  if (measured.size() < 3 * kFewFigures)
    return {fit_by(Way::kFromCosts, without_cases(measured), start.without_cases()),
            "costs fitted to few passes"};
  // The table before, cases and all, or lines of implementations alone.
  const auto whole = [&](Way way) {
    return [&start, way](const std::vector<FitPass>& seen) {
      return way == Way::kRescale ? fit_by(way, with_cases_of(seen, start), start)
                                  : fit_by(way, without_cases(seen), start.without_cases());
    };
  };
  double regrets[3];
  for (const Way way : {Way::kRescale, Way::kFromBefore, Way::kFromCosts})
    regrets[static_cast<int>(way)] = unseen_regret(measured, whole(way));
  // Costs that are right are worth a little regret.
  constexpr double kWorth = 1.003;
  const Way best = regrets[2] <= kWorth * std::min(regrets[0], regrets[1]) ? Way::kFromCosts
                   : regrets[1] < regrets[0]                               ? Way::kFromBefore
                                                                           : Way::kRescale;
  const auto by_cases = [&](const std::vector<FitPass>& seen) {
    return fit_by(Way::kFromCosts, with_many_cases(seen), whole(Way::kFromCosts)(seen), true);
  };
  const double of_cases = unseen_regret(measured, by_cases);
  const bool has_cases = of_cases < regrets[static_cast<int>(best)];
  return {has_cases ? by_cases(measured) : whole(best)(measured),
          fmt::format(
              "{}{}; regret on passes that a fit has not seen: {:.3f} with choices as before, {:.3f} with "
              "better ones, {:.3f} from costs, {:.3f} with lines for cases",
              best == Way::kFromCosts    ? "costs, then choices, were fitted"
              : best == Way::kFromBefore ? "choices were fitted"
                                         : "choices are as before, costs times one factor",
              has_cases ? ", then those of cases" : "", regrets[0], regrets[1], regrets[2], of_cases)};
}

}  // namespace retrograd::tools
