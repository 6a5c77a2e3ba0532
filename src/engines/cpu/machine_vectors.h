// SPDX-License-Identifier: Apache-2.0
// Vector width and registers of the machine that is planned for, which need not be the one that runs.
#pragma once

#include "base/machine.h"
#include "kernels/cpu/vector_shape.h"

namespace retrograd::engines::cpu {

using kernels::cpu::VectorShape;

inline VectorShape vectors_of(const Machine& machine) {
  return {.floats = machine.cpu.vector_floats,
          .registers = machine.cpu.vector_registers,
          .masked_loads = machine.cpu.masked_loads};
}

}  // namespace retrograd::engines::cpu
