// SPDX-License-Identifier: Apache-2.0
// From numbers known at run time to constants of the compiler.
#pragma once

#include <type_traits>

namespace retrograd::kernels::cuda {

template <int kNumber>
using Count = std::integral_constant<int, kNumber>;

// Calls function with the constant that equals the value; with the last one where none does.
template <auto kFirst, auto... kOthers, class Value, class Function>
decltype(auto) with_one_of(Value value, Function&& function) {
  if constexpr (sizeof...(kOthers) > 0)
    if (value != kFirst) return with_one_of<kOthers...>(value, function);
  return function(std::integral_constant<decltype(kFirst), kFirst>{});
}

}  // namespace retrograd::kernels::cuda
