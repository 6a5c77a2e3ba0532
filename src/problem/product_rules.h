// SPDX-License-Identifier: Apache-2.0
// Documented limits of single products, as one table: requests that are well defined, but that a product
// refuses.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/product.h"
#include "base/status.h"
#include "problem/request.h"

namespace retrograd::problem {

// A set of products, a bit each.
class ProductSet {
 public:
  constexpr ProductSet(std::initializer_list<Product> products) {
    for (const Product product : products) bits_ |= 1U << static_cast<unsigned>(product);
  }
  constexpr bool has(Product product) const { return (bits_ >> static_cast<unsigned>(product) & 1U) != 0; }

 private:
  unsigned bits_ = 0;
};

// Which values of an attribute a rule is about, and the range they must be in.
struct AxisLimit {
  enum class Form : unsigned char { kPlain, kTransposed, kEither };
  enum class Axes : unsigned char { kDepth, kPlane, kAll };  // D; H and W, in 1-D L; all of them
  Form form = Form::kEither;
  Axes axes = Axes::kAll;
  int64_t lowest = 0, highest = 0;
  int spatial_rank = 0;  // 0: any
};

struct ProductRule {
  // Names what breaks the rule, argument and value: "padding[1] is 256, expected 0 to 255". Empty when
  // nothing does; a request that is not even well formed breaks no rule here.
  using Find = std::string (*)(const Request& request, const ProductRule& rule);

  const char* name;  // "conv.padding"; rules of one row of the documents share it
  ProductSet products;
  Code code;
  const char* text;  // what the rule is about
  Find find;
  AxisLimit limit{};
};

// In the order in which phase one looks at them.
std::span<const ProductRule> product_rules();
// Whether the rule is about requests of this kind.
bool concerns(const ProductRule& rule, const Request& request);

struct BrokenRule {
  const ProductRule* rule;
  std::string sentence;  // argument, value, product and rule
};
// Every rule of `product` that the request breaks.
std::vector<BrokenRule> broken_rules(const Request& request, Product product);
// The first of them, as a refusal.
Status keep_product_rules(const Request& request, Product product);

// The product whose rules the request keeps, if any.
std::optional<Product> product_of(const Request& request);

}  // namespace retrograd::problem
