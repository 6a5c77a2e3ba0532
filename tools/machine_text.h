// SPDX-License-Identifier: Apache-2.0
// What planning knows of a machine, in words.
#pragma once

#include <string>

#include "base/machine.h"

namespace retrograd::tools {

// "zen3: 8 threads, vectors of 8 floats, 112 GFLOP/s each, copies 40 GB/s"; one line.
std::string text_of(const Machine& machine);

}  // namespace retrograd::tools
