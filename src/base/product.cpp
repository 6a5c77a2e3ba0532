// SPDX-License-Identifier: Apache-2.0
// Names of products.
#include "base/product.h"

namespace retrograd {

std::string_view name_of(Product product) {
  static constexpr std::string_view kNames[] = {"a2", "a3", "910_95", "training"};
  return kNames[static_cast<size_t>(product)];
}

std::optional<Product> product_from_name(std::string_view name) {
  for (const Product product : kProducts)
    if (name == name_of(product)) return product;
  return std::nullopt;
}

}  // namespace retrograd
