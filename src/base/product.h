// SPDX-License-Identifier: Apache-2.0
// The Ascend products whose documented limits can be enforced (RETROGRAD_RULES).
#pragma once

#include <optional>
#include <string_view>

namespace retrograd {

enum class Product : unsigned char { kA2, kA3, k910_95, kTraining };
inline constexpr Product kProducts[] = {Product::kA2, Product::kA3, Product::k910_95, Product::kTraining};

// "a2", "a3", "910_95", "training".
std::string_view name_of(Product product);
std::optional<Product> product_from_name(std::string_view name);

}  // namespace retrograd
