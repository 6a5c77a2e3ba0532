// SPDX-License-Identifier: Apache-2.0
// Counts operations by the live taps of the window, axis by axis.
#include "tools/measure/work.h"

#include <algorithm>

#include "problem/operand_views.h"

namespace retrograd::tools {
namespace {

using problem::Operand;

double operations(const problem::ConvPass& pass) {
  double products = static_cast<double>(pass.batch * pass.y_channels * pass.x_channels_per_group());
  for (const problem::Window& window : pass.axes) {
    double live = 0;
    for (int64_t output = 0; output < window.y; ++output)
      live += static_cast<double>(live_taps(window, output).size());
    products *= live;
  }
  return 2 * products;
}

double operations(const problem::BiasPass& pass) {
  return static_cast<double>(pass.channels * pass.reduction_length());
}

double operations(const problem::AvgPoolPass& pass) {
  double taps = static_cast<double>(pass.batch * pass.channels);
  for (const problem::PoolWindow& window : pass.axes) {
    double covered = 0;
    for (int64_t output = 0; output < window.y; ++output)
      covered += static_cast<double>(pooled_positions(window, output).size());
    taps *= covered;
  }
  return taps;
}

}  // namespace

bool touches(const problem::Problem& problem, Operand operand) {
  return std::any_of(problem.passes.begin(), problem.passes.end(), [&](const problem::Pass& pass) {
    return result_of(pass).operand == operand || reads(pass, operand);
  });
}

Work work_of(const problem::Problem& problem) {
  Work work;
  for (const problem::Pass& pass : problem.passes)
    work.operations += std::visit([](const auto& p) { return operations(p); }, pass);
  const auto views = views_of(problem.request);
  for (int i = 0; i < problem::kOperandCount; ++i) {
    const auto operand = static_cast<Operand>(i);
    if (!views[static_cast<size_t>(i)] || !touches(problem, operand)) continue;
    const problem::TensorView& view = *views[static_cast<size_t>(i)];
    const problem::OperandFacts& facts = problem.facts(operand);
    // A broadcast spans fewer bytes than it has elements.
    const double elements = static_cast<double>(problem::element_count(view.shape).value_or(0));
    work.bytes += std::min(elements * static_cast<double>(size_of(view.dtype)),
                           static_cast<double>(facts.end_byte - facts.lowest_byte));
  }
  return work;
}

}  // namespace retrograd::tools
