// SPDX-License-Identifier: Apache-2.0
// What the operands of a drawn problem hold and where they lie: numbers, special values, addresses.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "support/generator/draw.h"
#include "support/operands.h"

namespace retrograd::test {

enum class Special : unsigned char { kNan, kInf, kMinusInf, kMinusZero, kDenormal, kLargest };
inline constexpr int kSpecialCount = 6;
const char* name_of(Special special);

// How many elements of an operand are special: none, one, one in eight (at least two), one in two, all.
enum class Amount : unsigned char { kNone, kOne, kFew, kMany, kAll };
const char* name_of(Amount amount);

// Where the bytes of an operand lie in their block.
struct Placement {
  enum class Against : unsigned char { kEnd, kStart, kNeither };
  Against against = Against::kEnd;  // of a forbidden page
  int odd_bytes = 0;                // 1 to 3 off the alignment of its type; none for types of one byte
  int64_t offset = 0;               // kNeither: elements behind an address that is a multiple of 64
  bool operator==(const Placement&) const = default;
};

struct DataSketch {
  enum class Numbers : unsigned char {
    kIntegers,  // -2 to 2: all sums are exact
    kNormal
  };
  Numbers numbers = Numbers::kIntegers;
  // By operand; results have no values.
  struct Specials {
    Amount amount = Amount::kNone;
    unsigned kinds = 0;  // a bit for each Special
    bool operator==(const Specials&) const = default;
  };
  std::array<Specials, 3> specials{};  // grad_output (of forward problems: the bias), input, weight
  std::array<Placement, problem::kOperandCount> placements{};
  uint64_t seed = 0;

  bool has_specials() const;
  bool has(Special special) const;
};

DataSketch draw_data(Draw& draw);
// Writes the numbers, then the special values among them.
void fill(Operands& operands, const DataSketch& data);
// "integers; weight: one nan; input 1 byte off its alignment"
std::string to_string(const DataSketch& data);
// One thing less each: no special values in an operand, fewer of them, one kind, plain addresses.
std::vector<DataSketch> simpler_than(const DataSketch& data);

// The special value in that type, of either sign where there is one; what the type does not have is rounded
// as the type's codec does.
double special_value(Special special, DType dtype, Draw& draw);

}  // namespace retrograd::test
