// SPDX-License-Identifier: Apache-2.0
// The vectors of the machine that is planned for. Nothing that plans asks the kernels, which know this one's.
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
