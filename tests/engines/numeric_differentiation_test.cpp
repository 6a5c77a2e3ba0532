// SPDX-License-Identifier: Apache-2.0
// The reference against differences of an independent forward in double, over random problems of every kind.
//
// The loss is linear in each operand, so the difference quotient with step 1 is the derivative itself, up to
// the rounding of two losses.
#include <gtest/gtest.h>

#include <cmath>

#include "engines/reference/reference.h"
#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"
#include "support/operands.h"
#include "support/oracle.h"
#include "support/tolerance.h"

namespace retrograd::test {
namespace {

using problem::Operand;
using Values = std::vector<double>;

class NumericDifferentiation {
 public:
  NumericDifferentiation(const problem::Request& request, std::mt19937_64& random)
      : request_(request), operands_(request) {
    operands_.fill_normal(random, 1.0);
    operands_.poison_results();
    const engines::Candidate* const only_reference[] = {&engines::reference::candidate()};
    const Status status = run_on_cpu(legal_problem(request), operands_, only_reference);
    EXPECT_TRUE(status.is_ok()) << status.message();
    loss_.emplace(request, operands_);
    base_ = (*loss_)(loss_->input, loss_->weight, loss_->bias);
  }

  void check() {
    check(Operand::kGradInput, loss_->input,
          [&](const Values& x) { return (*loss_)(x, loss_->weight, loss_->bias); });
    check(Operand::kGradWeight, loss_->weight,
          [&](const Values& w) { return (*loss_)(loss_->input, w, loss_->bias); });
    check(Operand::kGradBias, loss_->bias,
          [&](const Values& b) { return (*loss_)(loss_->input, loss_->weight, b); });
  }

 private:
  template <class LossOf>
  void check(Operand operand, const Values& at, const LossOf& loss_of) {
    if (!operands_[operand]) return;
    const HostTensor& result = *operands_[operand];
    size_t i = 0;
    result.for_each([&](const Dims& index) {
      Values moved = at;
      moved[i++] += 1;
      const double quotient = loss_of(moved) - base_;
      // Each loss is a sum of (outputs + terms) numbers about as large as the loss gets: 2^20 units in the
      // last place of double cover that with room, and are still far below one unit of FP32.
      const double noise = std::ldexp(1.0 + std::abs(base_) + std::abs(quotient), -53 + 20 - 7);
      const double bound = half_ulp(DType::kF32, quotient) + noise;
      EXPECT_NEAR(result.get(index), quotient, bound)
          << name_of(operand) << "[" << to_string(index) << "] of " << problem::to_text(request_);
    });
  }

  problem::Request request_;
  Operands operands_;
  std::optional<Loss> loss_;
  double base_ = 0;
};

void check_many(ProblemSketch (ProblemGenerator::*draw)(), int problems, uint64_t seed) {
  // The loss is computed anew for every element.
  ProblemGenerator generator(seed, {.most_products = 2000, .most_elements = 600, .all_dtypes = false});
  std::mt19937_64 random(seed);
  for (int i = 0; i < problems && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", problem " << i);
    problem::Request request = *to_request((generator.*draw)());
    // Derivatives of what is asked for, not of rounded operands.
    if (auto* conv = std::get_if<problem::ConvRequest>(&request)) conv->math.mode %= 2;
    if (auto* tbc = std::get_if<problem::ConvTbcRequest>(&request)) tbc->math.mode %= 2;
    NumericDifferentiation(request, random).check();
  }
}

TEST(NumericDifferentiationTest, RandomConvolutions) { check_many(&ProblemGenerator::conv, 150, 20261115); }
TEST(NumericDifferentiationTest, RandomConvTbc) { check_many(&ProblemGenerator::conv_tbc, 60, 20261116); }
TEST(NumericDifferentiationTest, RandomAveragePooling) {
  check_many(&ProblemGenerator::avgpool, 150, 20261117);
}

}  // namespace
}  // namespace retrograd::test
