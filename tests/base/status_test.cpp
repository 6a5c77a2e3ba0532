// SPDX-License-Identifier: Apache-2.0
// Status, Result and the two macros that pass failures on.
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace retrograd {
namespace {

TEST(Status, IsOkUnlessGivenACode) {
  EXPECT_TRUE(Status().is_ok());
  EXPECT_TRUE(Status::ok().is_ok());
  const Status failed(Code::kBadShape, "weight.shape[1] is 3");
  EXPECT_FALSE(failed.is_ok());
  EXPECT_EQ(failed.code(), Code::kBadShape);
  EXPECT_EQ(failed.message(), "weight.shape[1] is 3");
}

TEST(Result, HoldsAValueOrAStatus) {
  const Result<int> good(5);
  EXPECT_TRUE(good.is_ok());
  EXPECT_TRUE(good.status().is_ok());
  EXPECT_EQ(good.value(), 5);
  const Result<int> bad(Status(Code::kTimeout, "too late"));
  EXPECT_FALSE(bad.is_ok());
  EXPECT_EQ(bad.status().code(), Code::kTimeout);
}

TEST(Result, GivesAMoveOnlyValueAway) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 7);
}

Result<std::unique_ptr<int>> boxed(int number) {
  if (number < 0) return Status(Code::kInvalidArgument, "number is negative");
  return std::make_unique<int>(number);
}

Result<int> sum_of_boxes(int a, int b) {
  RG_TRY(const auto first, boxed(a));
  RG_TRY(const auto second, boxed(b));
  return *first + *second;
}

Status check_both(int a, int b, int* checked) {
  RG_CHECK(boxed(a).status());
  ++*checked;
  RG_CHECK(boxed(b).status());
  ++*checked;
  return Status::ok();
}

TEST(RgTry, BindsTheValueOrReturnsTheFailure) {
  EXPECT_EQ(sum_of_boxes(2, 3).value(), 5);
  EXPECT_EQ(sum_of_boxes(-1, 3).status().message(), "number is negative");
  EXPECT_EQ(sum_of_boxes(2, -3).status().code(), Code::kInvalidArgument);
}

TEST(RgCheck, ReturnsAtTheFirstFailure) {
  const struct {
    int a, b, reached;
    bool ok;
  } rows[] = {{1, 1, 2, true}, {1, -1, 1, false}, {-1, 1, 0, false}};
  for (const auto& row : rows) {
    int checked = 0;
    EXPECT_EQ(check_both(row.a, row.b, &checked).is_ok(), row.ok);
    EXPECT_EQ(checked, row.reached);
  }
}

}  // namespace
}  // namespace retrograd
