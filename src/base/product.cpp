// SPDX-License-Identifier: Apache-2.0
// Names of products.
#include "base/product.h"

namespace retrograd {

std::string_view name_of(Product product) {
  switch (product) {
    case Product::kA2:
      return "a2";
    case Product::kA3:
      return "a3";
    case Product::k910_95:
      return "910_95";
    case Product::kTraining:
      return "training";
  }
  return "";
}

std::optional<Product> product_from_name(std::string_view name) {
  for (const Product product : kProducts)
    if (name == name_of(product)) return product;
  return std::nullopt;
}

}  // namespace retrograd
