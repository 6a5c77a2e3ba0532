// SPDX-License-Identifier: Apache-2.0
// Draw: numbers for the problem generator, the same on every machine for the same seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <span>

namespace retrograd::test {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  // The standard's distributions may differ from library to library; the engine's numbers do not. The
  // remainder's bias does not matter for ranges as short as these.
  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return number(1, 100) <= percent; }
  double fraction() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  // As likely to lie between 1 and 2 as between 100 and 200.
  int64_t log_number(int64_t low, int64_t high) {
    const double from = std::log(static_cast<double>(low)), to = std::log(static_cast<double>(high) + 1);
    const auto drawn = static_cast<int64_t>(std::exp(from + (to - from) * fraction()));
    return drawn < low ? low : drawn > high ? high : drawn;
  }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[number(0, static_cast<int64_t>(values.size()) - 1)];
  }
  // An entry of a table by its field `weight`.
  template <class Table>
  const auto& weighted(const Table& table) {
    int64_t all = 0;
    for (const auto& entry : table) all += entry.weight;
    int64_t left = number(1, all);
    for (const auto& entry : table)
      if ((left -= entry.weight) <= 0) return entry;
    return *std::begin(table);
  }
  uint64_t bits() { return random_(); }

 private:
  std::mt19937_64 random_;
};

}  // namespace retrograd::test
