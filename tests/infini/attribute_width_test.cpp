// SPDX-License-Identifier: Apache-2.0
// 32 or 64 bits: what the words show, and that nothing behind them is read.
#include "api/infini/attribute_width.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "infini/guarded_page.h"

namespace retrograd::api::infini {
namespace {

using infini_test::GuardedPage;
using Words = std::vector<int32_t>;
using Longs = std::vector<int64_t>;

class AttributeWidth : public testing::Test {
 protected:
  template <class T>
  Width shown(const std::vector<T>& list) {
    return attribute_width({first_.at_end(list)}, static_cast<int>(list.size()), otherwise_);
  }
  template <class A, class B>
  Width shown(const std::vector<A>& a, const std::vector<B>& b) {
    return attribute_width({first_.at_end(a), second_.at_end(b)}, static_cast<int>(a.size()), otherwise_);
  }

  Width otherwise_ = Width::k32;

 private:
  GuardedPage first_, second_;
};

TEST_F(AttributeWidth, NonzeroWordsAre32Bits) {
  otherwise_ = Width::k64;
  EXPECT_EQ(shown(Words{1, 1}), Width::k32);
  EXPECT_EQ(shown(Words{3, 2, 1}), Width::k32);
  EXPECT_EQ(shown(Words{1, std::numeric_limits<int32_t>::max()}), Width::k32);
}

TEST_F(AttributeWidth, AZeroHighHalfIs64Bits) {
  EXPECT_EQ(shown(Longs{1, 1}), Width::k64);
  EXPECT_EQ(shown(Longs{3, 2, 1}), Width::k64);
  EXPECT_EQ(shown(Longs{std::numeric_limits<uint32_t>::max(), 1}), Width::k64);
}

TEST_F(AttributeWidth, ZerosThatNo64BitListHasAre32Bits) {
  otherwise_ = Width::k64;
  EXPECT_EQ(shown(Words{0, 1}), Width::k32);
  EXPECT_EQ(shown(Words{0, 0}), Width::k32);
  EXPECT_EQ(shown(Words{1, 0, 0}), Width::k32);
  EXPECT_EQ(shown(Words{1, 1, 0}), Width::k32);
}

TEST_F(AttributeWidth, NegativeNumbersAreReadAs32Bits) {
  EXPECT_EQ(shown(Words{-1, 1}), Width::k32);
  EXPECT_EQ(shown(Longs{-1, 1}), Width::k32);
}

TEST_F(AttributeWidth, BothListsMustShow64Bits) {
  otherwise_ = Width::k64;
  EXPECT_EQ(shown(Longs{1, 1}, Longs{2, 2}), Width::k64);
  EXPECT_EQ(shown(Words{1, 1}, Words{2, 2}), Width::k32);
  // A forbidden zero in one list of two 32-bit ones.
  EXPECT_EQ(shown(Words{1, 0}, Words{2, 2}), Width::k32);
  EXPECT_EQ(shown(Words{2, 2}, Words{1, 0}), Width::k32);
}

TEST_F(AttributeWidth, ANullListShowsNothing) {
  const Longs longs{1, 1};
  const Words words{1, 1};
  for (Width otherwise : {Width::k32, Width::k64}) {
    EXPECT_EQ(attribute_width({nullptr, nullptr}, 2, otherwise), otherwise);
    EXPECT_EQ(attribute_width({nullptr, longs.data()}, 2, otherwise), Width::k64);
    EXPECT_EQ(attribute_width({words.data(), nullptr}, 2, otherwise), Width::k32);
  }
}

TEST_F(AttributeWidth, OneNumberShowsNothingAndIsNotRead) {
  const void* unreadable = reinterpret_cast<const void*>(uintptr_t{8});
  for (int count : {0, 1}) {
    EXPECT_EQ(attribute_width({unreadable, unreadable}, count, Width::k32), Width::k32);
    EXPECT_EQ(attribute_width({unreadable, unreadable}, count, Width::k64), Width::k64);
  }
}

TEST(ReadAttribute, ReadsEitherWidthWithItsSign) {
  GuardedPage page;
  EXPECT_EQ(read_attribute(page.at_end(Words{1, -2, 3}), 3, Width::k32, 0), (Longs{1, -2, 3}));
  EXPECT_EQ(read_attribute(page.at_end(Longs{1, INT64_MIN, INT64_MAX}), 3, Width::k64, 0),
            (Longs{1, INT64_MIN, INT64_MAX}));
}

TEST(ReadAttribute, IsTheDefaultWhenNull) {
  EXPECT_EQ(read_attribute(nullptr, 3, Width::k64, 1), (Longs{1, 1, 1}));
  EXPECT_EQ(read_attribute(nullptr, 0, Width::k32, 1), Longs{});
}

TEST(ReadAttribute, TakesAnyAlignment) {
  GuardedPage page;
  std::vector<char> bytes(9);
  const int64_t value = 0x0102030405060708;
  std::memcpy(bytes.data() + 1, &value, sizeof value);
  EXPECT_EQ(read_attribute(page.at_end(bytes) + 1, 1, Width::k64, 0), Longs{value});
  std::vector<char> fewer(bytes.begin(), bytes.begin() + 5);
  EXPECT_EQ(read_attribute(page.at_end(fewer) + 1, 1, Width::k32, 0), Longs{0x05060708});
}

TEST(CheckSizes, NamesASizeBeyond63BitsAsItWasGiven) {
  EXPECT_TRUE(check_sizes({0, 1, INT64_MAX}, Width::k64, "pads").is_ok());
  EXPECT_TRUE(check_sizes({-1}, Width::k32, "pads").is_ok()) << "a negative int stays what it is";
  const Status status = check_sizes({1, INT64_MIN}, Width::k64, "pads");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("pads[1] is 9223372036854775808"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace retrograd::api::infini
