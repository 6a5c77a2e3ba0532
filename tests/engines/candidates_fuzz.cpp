// SPDX-License-Identifier: Apache-2.0
// Candidates against each other on random problems, for as long as it is told:
//
//   candidates_fuzz [SECONDS [SEED]]
//
// On small integers every candidate must give the reference's bits. On random numbers each must lie within
// the bound derived from the sum's length and magnitude; the reference gives both, the latter from the
// operands' absolute values. What fails is printed as a problem that `retrograd check` and tests/shapes take.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>

#include "engines/registry.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "support/operands.h"
#include "support/random_request.h"
#include "support/tolerance.h"

namespace retrograd::test {
namespace {

using problem::Operand;

constexpr double kMostProducts = 4e6;  // some 10 ms of the reference

double products_of(const problem::Pass& pass) {
  const auto* conv = std::get_if<problem::ConvPass>(&pass);
  if (conv == nullptr) return 0;
  double products = static_cast<double>(conv->batch * conv->y_channels * conv->x_channels_per_group());
  for (const problem::Window& w : conv->axes) products *= static_cast<double>(w.y * w.kernel);
  return products;
}

int64_t longest_sum(const problem::Pass& pass) {
  if (const auto* bias = std::get_if<problem::BiasPass>(&pass)) return bias->reduction_length();
  if (const auto* conv = std::get_if<problem::ConvPass>(&pass)) {
    int64_t taps = 1, positions = conv->batch;
    for (const problem::Window& w : conv->axes) {
      taps *= w.kernel;
      positions *= w.y;
    }
    return conv->kind == problem::ConvPassKind::kGradWeight ? positions
           : conv->kind == problem::ConvPassKind::kForward  ? taps * conv->x_channels_per_group()
                                                            : taps * conv->y_channels_per_group();
  }
  int64_t windows = 1;
  for (const problem::PoolWindow& w : std::get<problem::AvgPoolPass>(pass).axes) windows *= w.kernel;
  return windows + 1;  // and the division
}

problem::PassTensor& result_tensor(problem::Pass& pass) {
  return const_cast<problem::PassTensor&>(result_of(std::as_const(pass)));
}

void run_step(const engines::Candidate& candidate, const problem::Pass& pass,
              const engines::Bindings& bindings) {
  const auto step = candidate.make_step(pass);
  const std::unique_ptr<void, void (*)(void*)> workspace(
      std::aligned_alloc(64, step->workspace_bytes() / 64 * 64 + 64), std::free);
  runtime::ExecutionContext context{.pool = &runtime::ThreadPool::instance()};
  step->run(bindings, static_cast<std::byte*>(workspace.get()), context);
}

// The reference's result in FP32, whatever the type of the pass's own.
HostTensor fine_result(problem::Pass pass, Operands& operands) {
  const Operand result = result_of(pass).operand;
  problem::TensorView view = operands[result]->view();
  view.dtype = result_tensor(pass).dtype = DType::kF32;
  HostTensor fine(view);
  engines::Bindings bindings = operands.bindings();
  bindings.set(result, fine.data());
  run_step(*engines::candidates(runtime::DeviceKind::kCpu).back(), pass, bindings);
  return fine;
}

void make_absolute(HostTensor& tensor) {
  tensor.for_each([&](const Dims& index) { tensor.set(index, std::abs(tensor.get(index))); });
}

class Fuzz {
 public:
  explicit Fuzz(uint64_t seed) : random_(seed) {}

  bool one_problem() {
    const problem::Request request = draw();
    auto problem = problem::judge(request);
    if (!problem.is_ok()) return true;
    for (const problem::Pass& pass : problem.value().passes)
      if (products_of(pass) > kMostProducts) return true;
    Operands operands(request);
    ++problems_;
    for (const problem::Pass& pass : problem.value().passes) {
      operands.fill_integers(random_, 2);
      const bool exact = compare(pass, operands, &Fuzz::bits_differ);
      operands.fill_normal(random_, 1.0);
      if (!compare(pass, operands, &Fuzz::bound_broken) || !exact) {
        fmt::print("{}\n", problem::to_text(request));
        return false;
      }
    }
    return true;
  }

  void report() const {
    fmt::print("{} problems\n", problems_);
    for (const auto& [name, runs] : runs_) fmt::print("  {:<24} {} runs\n", name, runs);
  }

 private:
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  // Half of them small, with every tail of a vector; the others cross the engines' blocks. Pooling overrides
  // the divisor, so that quotients of integers are exact.
  problem::Request draw() {
    RandomOptions options;
    if (number(0, 1) == 0) {
      const int64_t channels[] = {1, 4, 20, 80};
      options.most_channels = channels[number(0, 3)];
      options.most_groups = number(2, 70);
      options.largest_size = number(2, 40);
      options.largest_kernel = number(1, 9);
    }
    options.odd_strides = number(0, 2) == 0;
    options.all_dtypes = number(0, 1) == 0;
    switch (number(0, 9)) {
      case 2:
        return winograd_allowed();
      case 0:
        return random_conv_tbc(random_, options);
      case 1: {
        problem::Request request = random_avgpool(random_, options);
        std::get<problem::AvgPoolRequest>(request).divisor_override = 4;
        return request;
      }
      default:
        return random_conv(random_, options);
    }
  }

  problem::Request winograd_allowed() {
    const std::string text =
        fmt::format("conv input={0}x{1}x{2}x{3} weight={4}x{1}x3x3 padding={5}x{6} math=1", number(1, 3),
                    number(8, 70), number(4, 20), number(4, 20), number(8, 70), number(0, 2), number(0, 2));
    return problem::parse_request(text).value();
  }

  using Differ = bool (Fuzz::*)(const problem::Pass&, Operands&, const HostTensor& reference,
                                const HostTensor* magnitude, std::string& where) const;

  bool compare(const problem::Pass& pass, Operands& operands, Differ differ) {
    const Operand result = result_of(pass).operand;
    const HostTensor reference = fine_result(pass, operands);
    std::optional<HostTensor> magnitude;
    if (differ == &Fuzz::bound_broken) {
      Operands absolute = operands;
      for (Operand operand : {Operand::kGradOutput, Operand::kInput, Operand::kWeight})
        if (absolute[operand]) make_absolute(*absolute[operand]);
      magnitude = fine_result(pass, absolute);
    }
    const auto all = engines::candidates(runtime::DeviceKind::kCpu);
    for (const engines::Candidate* candidate : all) {
      if (!candidate->supports(pass).accepted()) continue;
      operands[result]->poison();
      run_step(*candidate, pass, operands.bindings());
      ++runs_[candidate->name()];
      std::string where;
      const Differ judge = is_exact(*candidate) ? differ : &Fuzz::far_from_largest;
      if ((this->*judge)(pass, operands, reference, magnitude ? &*magnitude : nullptr, where)) {
        fmt::print("{} {}: {}\n", candidate->name(), name_of(pass), where);
        return false;
      }
    }
    return true;
  }

  bool bits_differ(const problem::Pass& pass, Operands& operands, const HostTensor& reference,
                   const HostTensor*, std::string& where) const {
    HostTensor& result = *operands[result_of(pass).operand];
    const DType dtype = result.view().dtype;
    const std::vector<uint32_t> bits = result.bits();
    size_t i = 0;
    bool differ = false;
    reference.for_each([&](const Dims& index) {
      uint32_t expected = 0;
      store_from_f32(dtype, &expected, static_cast<float>(reference.get(index)));
      if (!differ && bits[i] != expected) {
        differ = true;
        where = fmt::format("[{}] is {} on integers, expected {}", to_string(index), result.get(index),
                            reference.get(index));
      }
      ++i;
    });
    return differ;
  }

  bool bound_broken(const problem::Pass& pass, Operands& operands, const HostTensor& reference,
                    const HostTensor* magnitude, std::string& where) const {
    HostTensor& result = *operands[result_of(pass).operand];
    const DType dtype = result.view().dtype;
    const int64_t terms = longest_sum(pass);
    bool broken = false;
    reference.for_each([&](const Dims& index) {
      const double expected = reference.get(index), value = result.get(index);
      uint32_t word = 0;
      store_from_f32(dtype, &word, static_cast<float>(expected));
      const double rounded = load_as_f32(dtype, &word);
      if (!std::isfinite(rounded)) return;  // beyond the range of an 8-bit type
      const double bound = sum_bound(dtype, expected, magnitude->get(index), terms, Accumulation::kFloat) +
                           std::abs(rounded - expected);
      if (broken || std::abs(value - expected) <= bound) return;
      broken = true;
      where = fmt::format("[{}] is {}, expected {} ± {:.3g}", to_string(index), value, expected, bound);
    });
    return broken;
  }

  // formats.md: 3e-5 of the largest result of the tensor.
  bool far_from_largest(const problem::Pass& pass, Operands& operands, const HostTensor& reference,
                        const HostTensor*, std::string& where) const {
    HostTensor& result = *operands[result_of(pass).operand];
    double largest = 0;
    reference.for_each([&](const Dims& i) { largest = std::max(largest, std::abs(reference.get(i))); });
    bool far = false;
    reference.for_each([&](const Dims& index) {
      const double expected = reference.get(index), value = result.get(index);
      if (far || std::abs(value - expected) <= 3e-5 * largest) return;
      far = true;
      where =
          fmt::format("[{}] is {}, expected {} ± {:.3g}", to_string(index), value, expected, 3e-5 * largest);
    });
    return far;
  }

  std::mt19937_64 random_;
  int64_t problems_ = 0;
  std::map<std::string, int64_t> runs_;
};

}  // namespace
}  // namespace retrograd::test

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device()();
  fmt::print("candidates_fuzz {} {}\n", seconds, seed);
  retrograd::test::Fuzz fuzz(seed);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  bool agree = true;
  while (agree && Clock::now() < end) agree = fuzz.one_problem();
  fuzz.report();
  return agree ? 0 : 1;
}
