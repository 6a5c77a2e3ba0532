// SPDX-License-Identifier: Apache-2.0
// The verdict on exact data: results equal to the exact ones bit for bit, or near them where reduced
// precision is allowed, and nothing written beside them.
#pragma once

#include "support/operands.h"
#include "support/oracle.h"

namespace retrograd::test {

// Every result that the operands have against the exact gradients, each rounded once to the result's type.
void expect_exact(const Operands& operands, const Gradients& exact);
// Every result within the bound for reduced precision.
void expect_near(const Operands& operands, const Gradients& exact);
// Whether a pass of the problem allows reduced precision.
bool allows_reduced_precision(const problem::Problem& problem);

}  // namespace retrograd::test
