// SPDX-License-Identifier: Apache-2.0
// RowPattern: the regular expressions of --rows, a set that can be searched for without recursion.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace retrograd::tools {

// Characters, . [a-z] [^a-z], ( ) | * + ? ^ $, and \ before a character that would mean something else. A
// search looks at each character of the name once for all places in the pattern: no name and no pattern
// makes it deep or slow, as std::regex becomes, which overflows the stack on a long name.
class RowPattern {
 public:
  static constexpr size_t kMostCharacters = 10'000;

  // kInvalidArgument says which character is wrong.
  static Result<RowPattern> parse(std::string_view text);
  // Whether any part of the name matches.
  bool found_in(std::string_view name) const;

 private:
  friend class RowPatternParser;
  enum class Kind : uint8_t { kSet, kBegin, kEnd, kPass, kFork, kFound };
  using Set = std::bitset<256>;
  // A place in the pattern, and where it goes on: a fork goes on at two.
  struct Place {
    Kind kind = Kind::kPass;
    uint32_t next = 0, other = 0;
    uint32_t set = 0;
  };
  class Search;

  std::vector<Place> places_;
  std::vector<Set> sets_;
  uint32_t first_ = 0;
};

}  // namespace retrograd::tools
