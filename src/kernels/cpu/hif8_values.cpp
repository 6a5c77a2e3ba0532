// SPDX-License-Identifier: Apache-2.0
// The table, filled from the codec at first use.
#include "kernels/cpu/hif8_values.h"

#include <array>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

const float* hif8_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> table{};
    for (size_t code = 0; code < table.size(); ++code) table[code] = hif8_to_f32(static_cast<uint8_t>(code));
    return table;
  }();
  return values.data();
}

}  // namespace retrograd::kernels::cpu
