// SPDX-License-Identifier: Apache-2.0
// ByteReader: a fuzzer's bytes as numbers. Small numbers are one byte each, so that seeds are short and
// mutations tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

namespace retrograd::fuzz {

// What must hold for every input. libFuzzer keeps the input of a process that aborts.
inline void require(bool condition) {
  if (!condition) std::abort();
}

// The first byte of an object: which handle the call gets. From kLive on its bits say what else is decoded.
enum HandleKind : uint8_t { kNull, kDead, kForeign, kAddress, kLive };
enum LiveBits : uint8_t {
  kOwnShape = 0x08,
  kStrided = 0x10,
  kOffset = 0x20,
  kStorage = 0x40,
  kNullData = 0x80
};

class ByteReader {
 public:
  ByteReader(const uint8_t* data, size_t size) : next_(data), end_(data + size) {}

  // 0 when there are no more.
  uint8_t byte() { return next_ == end_ ? uint8_t{0} : *next_++; }
  bool flag() { return (byte() & 1) != 0; }

  // 0 to 239 stand for themselves; above come the numbers that break arithmetic, and any 64 bits at all.
  int64_t number() {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    constexpr int64_t kOdd[] = {-1,
                                -2,
                                -7,
                                255,
                                256,
                                65535,
                                65536,
                                int64_t{1} << 31,
                                (int64_t{1} << 32) + 1,
                                int64_t{1} << 40,
                                int64_t{1} << 61,
                                int64_t{1} << 62,
                                kMax - 1,
                                kMax,
                                -kMax - 1};
    const uint8_t first = byte();
    if (first < 240) return first;
    if (first < 255) return kOdd[first - 240];
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
    return static_cast<int64_t>(bits);
  }

  std::vector<int64_t> numbers(size_t count) {
    std::vector<int64_t> values(count);
    for (int64_t& value : values) value = number();
    return values;
  }

  // One of a list for small bytes, otherwise the byte itself, as a signed number.
  template <size_t N>
  int choice(const int (&legal)[N]) {
    const uint8_t index = byte();
    return index < 4 * N ? legal[index % N] : static_cast<int8_t>(index);
  }

 private:
  const uint8_t* next_;
  const uint8_t* end_;
};

}  // namespace retrograd::fuzz
