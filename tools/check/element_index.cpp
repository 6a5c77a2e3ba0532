// SPDX-License-Identifier: Apache-2.0
// From the canonical (N, C, D, H, W) back to the rank and order of the request.
#include "tools/check/element_index.h"

#include <fmt/format.h>

#include <vector>

#include "problem/operand_views.h"

namespace retrograd::tools {

std::string element_index(const problem::Request& request, const problem::Pass& pass,
                          const engines::reference::Index5& i) {
  const problem::Operand operand = result_of(pass).operand;
  std::vector<int64_t> index;
  if (operand == problem::Operand::kGradBias) {
    index = {i.c};
  } else if (std::holds_alternative<problem::ConvTbcRequest>(request)) {
    index =
        operand == problem::Operand::kGradWeight ? std::vector{i.w, i.c, i.n} : std::vector{i.w, i.n, i.c};
  } else {
    index = {i.n, i.c, i.d, i.h, i.w};
    const auto rank = static_cast<size_t>(views_of(request)[static_cast<size_t>(operand)]->shape.rank());
    const auto* pool = std::get_if<problem::AvgPoolRequest>(&request);
    const bool no_batch =
        pool != nullptr && pool->spatial_rank > 0 && static_cast<int>(rank) == pool->spatial_rank + 1;
    if (no_batch) index.erase(index.begin());
    const auto first_axis = index.begin() + (no_batch ? 1 : 2);
    if (index.size() > rank)
      index.erase(first_axis, first_axis + static_cast<std::ptrdiff_t>(index.size() - rank));
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

}  // namespace retrograd::tools
