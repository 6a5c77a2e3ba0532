// SPDX-License-Identifier: Apache-2.0
// Exact data through all C interfaces: every problem of tests/shapes and random ones, bit for bit. CMake
// runs them again under limits of the workspace.
#include <gtest/gtest.h>

#include "acl/acl.h"
#include "base/settings.h"
#include "calls.h"
#include "problem/problem_text.h"
#include "support/exact.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/oracle.h"
#include "support/shape_files.h"

namespace retrograd::test {
namespace {

class InterfaceShapesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  }

  using Call = CallResult (*)(const problem::Request&, Operands&);
  // Calls on the same operands, one after the other.
  void check(const problem::Request& request, const std::vector<Call>& calls) {
    if (calls.empty()) return;
    SCOPED_TRACE(problem::to_text(request));
    Operands operands(request);
    operands.fill_integers(random_, 2);
    const Gradients exact = exact_gradients(request, operands);
    for (const Call call : calls) {
      operands.poison_results();
      const CallResult result = call(request, operands);
      ASSERT_EQ(result.failure, "");
      if (allows_reduced_precision(legal_problem(as_set(request)))) {
        expect_near(operands, exact);
      } else {
        expect_exact(operands, exact);
      }
      EXPECT_LE(result.workspace, settings().workspace_limit);
      largest_workspace_ = std::max(largest_workspace_, result.workspace);
      ++calls_;
    }
  }

  // The key winograd has no argument: only the setting allows it.
  static problem::Request as_set(problem::Request request) {
    if (auto* conv = std::get_if<problem::ConvRequest>(&request)) conv->math.winograd = settings().winograd;
    return request;
  }

  void check_all(problem::Request request) {
    // Divisors that are no powers of two would make the quotients inexact.
    if (auto* pool = std::get_if<problem::AvgPoolRequest>(&request)) pool->divisor_override = 4;
    std::vector<Call> calls;
    if (aclnn_offers(request)) calls.push_back(call_aclnn);
    // infiniop's forward pooling has no divisor to override: one that is a power of two by itself will do.
    if (auto* pool = std::get_if<problem::AvgPoolRequest>(&request);
        pool != nullptr && pool->forward && counts_powers_of_two(*pool)) {
      check(request, calls);
      calls.clear();
      pool->divisor_override = 0;
    }
    if (infiniop_offers(request)) calls.push_back(call_infiniop);
    if (retrograd_offers(request)) calls.push_back(call_retrograd);
    check(request, calls);
  }

  // Every window holds 2^n places: nothing is padded or clipped.
  static bool counts_powers_of_two(const problem::AvgPoolRequest& r) {
    const auto all = [](const std::vector<int64_t>& values, auto good) {
      return std::all_of(values.begin(), values.end(), good);
    };
    return !r.ceil_mode && all(r.padding, [](int64_t p) { return p == 0; }) &&
           all(r.kernel, [](int64_t k) { return (k & (k - 1)) == 0; });
  }

  std::mt19937_64 random_{2026};
  int calls_ = 0;
  size_t largest_workspace_ = 0;
};

TEST_F(InterfaceShapesTest, ShapeFiles) {
  for (const NamedRequest& named : read_shape_files()) {
    SCOPED_TRACE(named.place);
    check_all(named.request);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(calls_, 100);
  // A limit is used, and what it forbids is computed without a workspace.
  EXPECT_EQ(largest_workspace_ > 0, settings().workspace_limit > 0);
}

// Winograd's bits differ from those of exact products. An option of both interfaces, in aclnn where
// cubeMathType is 1 only.
TEST_F(InterfaceShapesTest, UsesWinogradWhereTheUserAllowsIt) {
  const std::string text = "conv input=2x64x14x14 weight=64x64x3x3 padding=1x1";
  const auto bits = [&](Call call, const std::string& mode) {
    const problem::Request request = problem::parse_request(text + mode).value();
    std::mt19937_64 random(1);
    Operands operands(request);
    operands.fill_normal(random, 1.0);
    EXPECT_EQ(call(request, operands).failure, "");
    auto both = operands[problem::Operand::kGradInput]->bits();
    const auto weight = operands[problem::Operand::kGradWeight]->bits();
    both.insert(both.end(), weight.begin(), weight.end());
    return both;
  };
  const auto exact = bits(call_aclnn, " math=0"), allowed = bits(call_aclnn, " math=1");
  EXPECT_EQ(allowed != exact, settings().winograd && settings().workspace_limit == SIZE_MAX);
  EXPECT_EQ(bits(call_infiniop, ""), allowed);
  EXPECT_EQ(bits(call_retrograd, ""), allowed);
}

TEST_F(InterfaceShapesTest, RandomRequests) {
  ProblemGenerator generator(2026, {.forward = 30}),
      dense(2027, {.all_dtypes = false, .any_strides = false, .forward = 30});
  const int rounds = settings().workspace_limit == SIZE_MAX ? 60 : 600;
  for (int i = 0; i < rounds && !HasFatalFailure(); ++i) {
    check_all(*to_request(generator.conv()));
    check_all(*to_request(dense.conv()));
    check_all(*to_request(generator.conv_tbc()));
    check_all(*to_request(generator.avgpool()));
  }
  EXPECT_GT(calls_, 400);
  EXPECT_EQ(largest_workspace_ > 0, settings().workspace_limit > 0);
}

}  // namespace
}  // namespace retrograd::test
