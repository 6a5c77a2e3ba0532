// SPDX-License-Identifier: Apache-2.0
// Views: overflow, storage bounds, and self-overlap decided exactly.
#include "problem/tensor_view.h"

#include <gtest/gtest.h>

#include <ctime>
#include <limits>
#include <random>
#include <set>

namespace retrograd::problem::tensor_view_test {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TensorView strided(const Dims& shape, const Dims& strides) {
  TensorView view = dense_view(DType::kF32, shape);
  view.strides = strides;
  return view;
}

bool overlaps_by_listing(const TensorView& view) {
  std::set<int64_t> seen;
  Dims index = Dims::filled(view.shape.rank(), 0);
  while (true) {
    int64_t offset = 0;
    for (int i = 0; i < index.rank(); ++i) offset += index[i] * view.strides[i];
    if (!seen.insert(offset).second) return true;
    int axis = index.rank() - 1;
    for (; axis >= 0; --axis) {
      if (++index[axis] < view.shape[axis]) break;
      index[axis] = 0;
    }
    if (axis < 0) return false;
  }
}

TEST(TensorViewTest, DenseStridesAreRowMajor) {
  const TensorView view = dense_view(DType::kF16, {2, 3, 4});
  EXPECT_EQ(view.strides, (Dims{12, 4, 1}));
  EXPECT_TRUE(is_dense(view));
  EXPECT_TRUE(is_dense(strided({2, 1, 4}, {4, 99, 1}))) << "the stride of a unit axis does not matter";
  EXPECT_FALSE(is_dense(strided({2, 4}, {1, 2})));
}

TEST(TensorViewTest, OverlapAgreesWithListingAllOffsets) {
  std::mt19937_64 random(3);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int overlapping = 0;
  for (int i = 0; i < 20000; ++i) {
    Dims shape, strides;
    const int64_t rank = draw(1, 5);
    for (int64_t a = 0; a < rank; ++a) {
      shape.push_back(draw(1, 4));
      strides.push_back(draw(-20, 20));
    }
    const TensorView view = strided(shape, strides);
    const bool expected = overlaps_by_listing(view);
    overlapping += expected;
    ASSERT_EQ(overlaps_itself(view), expected) << to_string(shape) << "@" << to_string(strides);
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_LT(overlapping, 19000);
}

TEST(TensorViewTest, OverlapIsDecidedForLargeViews) {
  EXPECT_FALSE(overlaps_itself(dense_view(DType::kF32, {1024, 1024, 1024, 1024})));
  EXPECT_FALSE(overlaps_itself(strided({512, 256, 224, 224}, {256 * 224 * 224, 1, 224 * 256, 256})));
  EXPECT_FALSE(overlaps_itself(strided({1000, 1000}, {1001, 1000})));
  EXPECT_TRUE(overlaps_itself(strided({1001, 1002}, {1001, 1000})));
  EXPECT_TRUE(overlaps_itself(strided({1000, 1000}, {0, 1})));
}

TEST(TensorViewTest, EmptyAndSingleElementViewsNeverOverlap) {
  EXPECT_FALSE(overlaps_itself(strided({0, 5}, {0, 0})));
  EXPECT_FALSE(overlaps_itself(strided({1, 1}, {0, 0})));
}

void expect_message(const Status& status, Code code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const char* part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(TensorViewTest, BadSizesAreNamed) {
  expect_message(check_view(dense_view(DType::kF32, {2, -3}), "input"), Code::kBadShape,
                 {"input.shape[1] is -3", "at least 0"});
  expect_message(check_view(dense_view(DType::kF32, {kHuge, 2}), "input"), Code::kBadShape,
                 {"input.shape is 9223372036854775807x2", "64 bits"});
  expect_message(check_view(dense_view(DType::kF32, {int64_t{1} << 61, 2}), "input"), Code::kBadShape,
                 {"64 bits"});
  expect_message(check_view(strided({2, 2}, {kHuge, kHuge}), "input"), Code::kBadShape,
                 {"strides", "64 bits"});
  expect_message(check_view(strided({2, 2}, {-kHuge, -kHuge}), "input"), Code::kBadShape, {"64 bits"});
  EXPECT_TRUE(check_view(strided({0, 2}, {kHuge, kHuge}), "input").is_ok())
      << "an empty view touches nothing";
  EXPECT_TRUE(check_view(dense_view(DType::kF32, {0, kHuge, kHuge}), "input").is_ok());
}

TEST(TensorViewTest, AViewMustStayInItsStorage) {
  TensorView view = dense_view(DType::kF32, {2, 3});
  view.storage_shape = Dims{6};
  EXPECT_TRUE(check_view(view, "input").is_ok());
  view.offset = 1;
  expect_message(check_view(view, "input"), Code::kBadStrides,
                 {"input leaves its storage", "offset 1", "1 to 6"});
  view.offset = -1;
  expect_message(check_view(view, "input"), Code::kBadStrides, {"-1 to 4"});
  view.strides = {-3, 1};
  view.offset = 3;
  EXPECT_TRUE(check_view(view, "input").is_ok());
  view.offset = 2;
  expect_message(check_view(view, "input"), Code::kBadStrides, {"-1 to 4"});
  view.offset = kHuge;
  expect_message(check_view(view, "input"), Code::kBadStrides, {"input leaves its storage"});
  view.offset = 0;
  view.storage_shape = Dims{-1};
  expect_message(check_view(view, "input"), Code::kBadStrides, {"storageDims is -1"});
}

TEST(TensorViewTest, OverlappingOutputsAreRefused) {
  expect_message(check_output_view(strided({2, 3}, {1, 1}), "gradInput"), Code::kBadStrides,
                 {"gradInput.strides is 1x1", "2x3", "share an address"});
}

// Processor time of this thread: the machine may be busy.
double seconds_used() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Strides without a common factor and as large as the sizes: every value of the first axis can be cancelled
// by one of the second, and none is. Milliseconds are allowed; trying all of them takes seconds.
TEST(TensorViewTest, ContrivedStridesAreGivenUpSoon) {
  TensorView view = dense_view(DType::kF32, {700'000'007, 700'000'005});
  view.strides = {700'000'009, 700'000'008};
  ASSERT_TRUE(check_view(view, "view").is_ok());
  const double before = seconds_used();
  EXPECT_TRUE(overlaps_itself(view));
  EXPECT_LT(seconds_used() - before, 0.1);
  for (const Dims& shape : {Dims{30011, 30013, 30029}, Dims{997, 1009, 1013, 1019, 1021}}) {
    TensorView deep = dense_view(DType::kF32, shape);
    for (int i = 0; i < shape.rank(); ++i) deep.strides[i] = 1'000'003 + 2 * i;
    const double begin = seconds_used();
    EXPECT_TRUE(overlaps_itself(deep));
    EXPECT_LT(seconds_used() - begin, 0.1);
  }
}

// The message says no more than what is known.
TEST(TensorViewTest, AnUndecidedOverlapIsRefusedAsSuch) {
  expect_message(
      check_output_view(strided({700'000'007, 700'000'005}, {700'000'009, 700'000'008}), "gradInput"),
      Code::kBadStrides,
      {"gradInput.strides is 700000009x700000008 for shape 700000007x700000005",
       "it could not be decided whether two elements share an address"});
}

}  // namespace
}  // namespace retrograd::problem::tensor_view_test
