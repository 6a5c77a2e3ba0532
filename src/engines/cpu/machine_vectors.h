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

// Those of kernels whose sums do not depend on them (tile_product.h, row_sums.h): wider ones, perhaps, where
// bits are portable, and the cuts that sums depend on are made for vectors_of(machine).
inline VectorShape widest_vectors_of(const Machine& machine) {
  const VectorShape vectors = vectors_of(machine);
  return vectors == kernels::cpu::vector_shape() ? kernels::cpu::widest_shape() : vectors;
}

}  // namespace retrograd::engines::cpu
