// SPDX-License-Identifier: Apache-2.0
// Conversions before a step.
#include "engines/engine.h"

#include <algorithm>

namespace retrograd::engines {

size_t count_made(Conversions wanted, Conversions made) {
  const auto same = [](const auto& a, const auto& b) { return a->text() == b->text(); };
  return static_cast<size_t>(
      std::mismatch(wanted.begin(), wanted.end(), made.begin(), made.end(), same).first - wanted.begin());
}

void run_converted(const Step& step, size_t made, const Bindings& bindings, std::byte* workspace,
                   runtime::ExecutionContext& context) {
  std::byte* at = workspace;
  for (const auto& conversion : step.conversions()) {
    if (made > 0)
      --made;
    else
      conversion->run(bindings, at, context);
    at += conversion->bytes();
  }
  step.run(bindings, workspace, context);
}

}  // namespace retrograd::engines
