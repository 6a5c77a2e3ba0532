// SPDX-License-Identifier: Apache-2.0
// Judges one pass of one candidate against sums in double, by the rules of docs/numerics.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "engines/engine.h"
#include "problem/problem.h"

namespace retrograd::tools {

// What was found on one kind of data.
struct Finding {
  bool ok = true;
  int64_t compared = 0, elements = 0;  // of the result; fewer are compared where the sums would take too long
  int64_t wrong = 0;  // of those compared: other bits (exact data), beyond the bound (random)
  // The element that is closest to its bound, or furthest beyond it.
  std::string index;  // "[0,3,2,1]", in the order of the caller's tensor
  double result = 0, exact = 0;
  double ulp = 0;       // the error in units in the last place of the result's type
  double of_bound = 0;  // error / bound; exact data has no bound
  std::string why;      // the rule that is broken; or what was looked at besides
};

struct CheckOptions {
  // Products of all sums together; results that need more are sampled, always at the same elements.
  int64_t products = 20'000'000;
  bool full = false;  // every element, however long it takes
  uint64_t seed = 1;
  runtime::Device* device = nullptr;  // that computes; null: the CPU
};

// The data of a pass and its exact results, made once and used for any number of candidates.
class PassCheck {
 public:
  enum class Data : unsigned char { kExact, kRandom };
  // Fails without memory for the tensors.
  static Result<std::unique_ptr<PassCheck>> make(const problem::Problem& problem, size_t pass, Data data,
                                                 const CheckOptions& options);
  virtual ~PassCheck() = default;
  virtual Finding judge(const engines::Candidate& candidate) = 0;
};

// The problem whose sums small integers leave exact: pooling divides by 4 instead of what its windows count.
problem::Request with_exact_sums(problem::Request request);

}  // namespace retrograd::tools
