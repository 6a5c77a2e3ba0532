// SPDX-License-Identifier: Apache-2.0
// Coordinate descent on the logarithms of the efficiencies: first each implementation for itself, so that its
// costs are right, then all together, so that the choices are.
#include "tools/tuning_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/percentiles.h"

namespace retrograd::tools {
namespace {

using engines::Efficiency;
using engines::Tuning;

constexpr double kFarthest = 3;        // an error beyond e^3 counts no more: an outlier
constexpr double kPrior = 0.003;       // what no figure depends on stays as it was
constexpr double kErrorWeight = 0.05;  // of errors beside regret, when all are fitted together
constexpr size_t kFewFigures = 5;      // fewer than that tell one factor, not four numbers
// Steps on a logarithm, coarse ones first.
constexpr double kSteps[] = {1.6, 0.8, 0.4, 0.2, 0.1, 0.05, 0.025};

struct Named {
  Efficiency now, before;
  std::vector<FitFigure> figures;
};
using Table = std::map<std::string, Named>;

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

double error_of(const Efficiency& efficiency, const Efficiency& before,
                const std::vector<FitFigure>& figures) {
  double sum = 0;
  for (const FitFigure& figure : figures)
    sum += std::min(kFarthest, distance(predicted(efficiency, figure), figure.measured));
  return sum / static_cast<double>(figures.size()) +
         kPrior * (distance(efficiency.arithmetic, before.arithmetic) +
                   distance(efficiency.memory, before.memory) + distance(efficiency.start, before.start) +
                   (before.call > 0 ? distance(efficiency.call, before.call) : 0));
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
  for (const FitFigure& figure : named.figures)
    factors.push_back(predicted(named.now, figure) / figure.measured);
  named.now = moved(named.now, kCoordinates - 1, percentile(factors, 50));
}

void fit_alone(Named& named) {
  rescale(named);
  if (named.figures.size() < kFewFigures) return;
  const auto objective = [&] { return error_of(named.now, named.before, named.figures); };
  for (const double step : kSteps)
    while (descend(named.now, step, objective)) {
    }
}

struct Link {
  const Efficiency* efficiency;
  const FitFigure* figure;
};
double log_regret(const std::vector<Link>& pass) {
  double cheapest = HUGE_VAL, chosen = 0, fastest = HUGE_VAL;
  for (const Link& link : pass) {
    fastest = std::min(fastest, link.figure->measured);
    if (const double cost = predicted(*link.efficiency, *link.figure); cost < cheapest) {
      cheapest = cost;
      chosen = link.figure->measured;
    }
  }
  return std::log(chosen / fastest);
}

// Only passes with a choice count, and only what can be told from several figures moves.
void fit_together(const std::vector<FitPass>& passes, Table& table) {
  std::vector<std::vector<Link>> choices;
  for (const FitPass& pass : passes) {
    if (pass.size() < 2) continue;
    std::vector<Link>& links = choices.emplace_back();
    for (const FitFigure& figure : pass) links.push_back({&table.at(figure.name).now, &figure});
  }
  if (choices.empty()) return;
  // Only those that an implementation takes part in change with it.
  std::map<std::string, std::vector<const std::vector<Link>*>> choices_of;
  for (const std::vector<Link>& links : choices)
    for (const Link& link : links) choices_of[link.figure->name].push_back(&links);
  constexpr int kSweeps = 4;
  for (const double step : kSteps)
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      bool fell = false;
      for (auto& [name, named] : table) {
        const auto& own = choices_of[name];
        if (named.figures.size() < kFewFigures || own.empty()) continue;
        fell |= descend(named.now, step, [&, &named = named] {
          double sum = 0;
          for (const std::vector<Link>* links : own) sum += log_regret(*links);
          return sum / static_cast<double>(own.size()) +
                 kErrorWeight * error_of(named.now, named.before, named.figures);
        });
      }
      if (!fell) break;
    }
}

// Regret first, errors where it is the same.
double badness(const std::vector<FitPass>& passes, const Table& table) {
  double regrets = 0, errors = 0, figures = 0;
  for (const FitPass& pass : passes) {
    std::vector<Link> links;
    for (const FitFigure& figure : pass) links.push_back({&table.at(figure.name).now, &figure});
    if (!links.empty()) regrets += log_regret(links);
  }
  for (const auto& [name, named] : table) {
    errors += error_of(named.now, named.before, named.figures) * static_cast<double>(named.figures.size());
    figures += static_cast<double>(named.figures.size());
  }
  return regrets / static_cast<double>(passes.size()) + kErrorWeight * errors / figures;
}

}  // namespace

double predicted(const Efficiency& efficiency, const FitFigure& figure) {
  return figure.launches * efficiency.start + figure.calls * efficiency.call / 1000 +
         std::max(figure.arithmetic / efficiency.arithmetic, figure.memory / efficiency.memory);
}

double regret(const Tuning& tuning, const FitPass& pass) {
  std::vector<Efficiency> efficiencies;
  for (const FitFigure& figure : pass) efficiencies.push_back(tuning.of(figure.name));
  std::vector<Link> links;
  for (size_t i = 0; i < pass.size(); ++i) links.push_back({&efficiencies[i], &pass[i]});
  return std::exp(log_regret(links));
}

double mean_regret(const Tuning& tuning, const std::vector<FitPass>& passes) {
  std::vector<double> regrets;
  for (const FitPass& pass : passes)
    if (!pass.empty()) regrets.push_back(regret(tuning, pass));
  return regrets.empty() ? 1 : geometric_mean(regrets);
}

double typical_error(const Tuning& tuning, const std::vector<FitPass>& passes, const std::string& name) {
  std::vector<double> errors;
  for (const FitPass& pass : passes)
    for (const FitFigure& figure : pass)
      if (figure.name == name)
        errors.push_back(std::exp(distance(predicted(tuning.of(name), figure), figure.measured)));
  return errors.empty() ? 0 : percentile(errors, 50);
}

Tuning fit(const std::vector<FitPass>& passes, const Tuning& start) {
  Table table;
  for (const FitPass& pass : passes)
    for (const FitFigure& figure : pass) table[figure.name].figures.push_back(figure);
  if (table.empty()) return start;
  for (auto& [name, named] : table) named.now = named.before = start.of(name);
  // From costs that are right, and from the choices that were made before, all slower by one factor.
  Table as_before = table;
  std::vector<double> factors;
  for (auto& [name, named] : table) {
    fit_alone(named);
    for (const FitFigure& figure : named.figures)
      factors.push_back(predicted(named.before, figure) / figure.measured);
  }
  for (auto& [name, named] : as_before)
    named.now = moved(named.now, kCoordinates - 1, percentile(factors, 50));
  fit_together(passes, table);
  fit_together(passes, as_before);
  if (badness(passes, as_before) < badness(passes, table)) table = std::move(as_before);
  Tuning tuning = start;
  for (const auto& [name, named] : table) tuning.set(name, named.now);
  return tuning;
}

}  // namespace retrograd::tools
