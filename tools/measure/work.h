// SPDX-License-Identifier: Apache-2.0
// What a problem costs at least: operations without those on padding, and bytes with each tensor touched
// once.
#pragma once

#include "problem/problem.h"

namespace retrograd::tools {

struct Work {
  double operations = 0;  // multiplications and additions
  double bytes = 0;
};
Work work_of(const problem::Problem& problem);

// Whether one of the problem's passes reads or writes it.
bool touches(const problem::Problem& problem, problem::Operand operand);

}  // namespace retrograd::tools
