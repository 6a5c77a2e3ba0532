// SPDX-License-Identifier: Apache-2.0
// The list for GPUs. Order is preference; adding an engine is a line.
#include "engines/cuda/candidates.h"

#include <array>

#include "engines/cuda/direct.h"

namespace retrograd::engines::cuda {

std::span<const Candidate* const> candidates() {
  static const std::array<const Candidate*, 1> all = {
      &direct(),  // everything
  };
  return all;
}

}  // namespace retrograd::engines::cuda
