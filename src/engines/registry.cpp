// SPDX-License-Identifier: Apache-2.0
// The lists of candidates. Order is preference; adding an engine is a line.
#include "engines/registry.h"

#include <array>

#include "engines/cpu/avgpool_rows.h"
#include "engines/cpu/chunked_bias.h"
#include "engines/cpu/dense_gather.h"
#include "engines/cpu/dense_grad_weight.h"
#include "engines/cpu/narrow_gather.h"
#include "engines/cpu/narrow_grad_weight.h"
#include "engines/reference/reference.h"

namespace retrograd::engines {

std::span<const Candidate* const> candidates(runtime::DeviceKind kind) {
  static const std::array<const Candidate*, 7> on_cpu = {
      &cpu::narrow_gather(),
      &cpu::dense_gather(),
      &cpu::narrow_grad_weight(),
      &cpu::dense_grad_weight(),
      &cpu::chunked_bias(),
      &cpu::avgpool_rows(),
      &reference::candidate(),
  };
  switch (kind) {
    case runtime::DeviceKind::kCpu:
      return on_cpu;
    case runtime::DeviceKind::kCuda:
      return {};
  }
  return {};
}

}  // namespace retrograd::engines
