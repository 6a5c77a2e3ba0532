// SPDX-License-Identifier: Apache-2.0
// encoded(): numbers as the bytes of a tensor of a type.
#pragma once

#include <cstddef>
#include <vector>

#include "base/dtype.h"

namespace retrograd::kernels::cpu {

inline std::vector<std::byte> encoded(DType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (size_t i = 0; i < values.size(); ++i)
    store_from_f32(type, bytes.data() + i * size_of(type), values[i]);
  return bytes;
}

}  // namespace retrograd::kernels::cpu
