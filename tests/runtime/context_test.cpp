// SPDX-License-Identifier: Apache-2.0
// Contexts: a stream of their own, and switches that are unset until they are set.
#include "runtime/context.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "host_fixture.h"
#include "runtime/host/host_device.h"

namespace retrograd::runtime {
namespace {

TEST(Context, HasAWorkingStreamOfItsDevice) {
  HostDevice another(2);
  const auto context = Context::create(another);
  ASSERT_TRUE(context.is_ok());
  EXPECT_EQ(&context.value()->device(), &another);
  const auto& stream = context.value()->default_stream();
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(&stream->device(), &another);
  int ran = 0;
  RG_EXPECT_OK(stream->submit([&](ExecutionContext&) { ++ran; }));
  RG_EXPECT_OK(stream->synchronize());
  EXPECT_EQ(ran, 1);
}

TEST(Context, EachHasItsOwnStream) {
  const auto first = Context::create(cpu());
  const auto second = Context::create(cpu());
  EXPECT_NE(first.value()->default_stream(), second.value()->default_stream());
}

TEST(Context, OptionsAreUnsetUntilTheyAreSet) {
  const auto context = Context::create(cpu()).value();
  const auto other = Context::create(cpu()).value();
  for (int index = 0; index < Context::kOptionCount; ++index)
    EXPECT_FALSE(context->option(index).has_value());
  context->set_option(2, 0);
  EXPECT_EQ(context->option(2), 0);
  context->set_option(2, -7);
  EXPECT_EQ(context->option(2), -7);
  EXPECT_FALSE(context->option(1).has_value());
  EXPECT_FALSE(context->option(3).has_value());
  EXPECT_FALSE(other->option(2).has_value());
}

TEST(Context, AnOptionThatDoesNotExistIsNeverSet) {
  const auto context = Context::create(cpu()).value();
  for (const int index :
       {-1, Context::kOptionCount, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    context->set_option(index, 1);
    EXPECT_FALSE(context->option(index).has_value());
  }
}

}  // namespace
}  // namespace retrograd::runtime
