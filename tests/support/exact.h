// SPDX-License-Identifier: Apache-2.0
// The verdict on exact data: results equal to the exact ones bit for bit, and nothing written beside them.
#pragma once

#include "support/operands.h"
#include "support/oracle.h"

namespace retrograd::test {

// Every result that the operands have against the exact gradients, each rounded once to the result's type.
void expect_exact(const Operands& operands, const Gradients& exact);

}  // namespace retrograd::test
