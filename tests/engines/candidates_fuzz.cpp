// SPDX-License-Identifier: Apache-2.0
// Every candidate on drawn problems, judged by the oracle, for as long as it is told:
//
//   candidates_fuzz [SECONDS [SEED]] [--device cpu|cuda] [--keep-going] [--problem N]
//
// On small integers a result has the bits of the exact sum, on random numbers it lies within the bound of its
// sum, and NaN and Inf are exactly where the terms say. Operands lie between forbidden pages (CPU), results
// in poisoned memory. What fails is made smaller and printed as a problem that `retrograd check` and
// tests/shapes take. --problem runs the one problem of that number again; --keep-going goes on after a
// failure.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>

#include "engines/registry.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "problem/problem_text.h"
#include "support/fault_guard.h"
#include "support/generator/problem_generator.h"
#include "support/trial.h"

namespace retrograd::test {
namespace {

struct Options {
  double seconds = 5;
  uint64_t seed = std::random_device()();
  const char* device = nullptr;  // all there are
  bool keep_going = false;
  int64_t problem = -1;
};

// Nearly all are small, hundreds to thousands a second; some cross the engines' blocks. A GPU's tiles are
// larger, and its launches take longer than small sums.
struct Size {
  double products, elements;
  int64_t weight;
};
constexpr Size kSizesOnCpu[] = {{6e3, 6e4, 88}, {6e4, 2e5, 11}, {2e6, 5e5, 1}};
constexpr Size kSizesOnGpu[] = {{6e3, 6e4, 60}, {6e4, 2e5, 30}, {4e6, 1e6, 10}};

struct Drawn {
  ProblemSketch sketch;
  DataSketch data;
  Effort effort;
};

Drawn draw_problem(runtime::DeviceKind device, uint64_t seed, int64_t number) {
  Draw draw(seed * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(number));
  GeneratorOptions options;
  const bool on_gpu = device != runtime::DeviceKind::kCpu;
  const Size& size = draw.weighted(on_gpu ? kSizesOnGpu : kSizesOnCpu);
  options.most_products = size.products;
  options.most_elements = size.elements;
  options.forward = 35;
  if (draw.chance(on_gpu ? 20 : 3)) options.mode = GeneratorOptions::Mode::kNetwork;
  Drawn drawn{
      ProblemGenerator(draw.bits(), options).any(), draw_data(draw), {draw.chance(8), draw.chance(40)}};
  // Most sums of integers are to be exact ones.
  const bool integers = drawn.data.numbers == DataSketch::Numbers::kIntegers;
  if (drawn.sketch.kind == ProblemKind::kAvgPool && integers && draw.chance(75)) drawn.sketch.divisor = 4;
  return drawn;
}

class Fuzz {
 public:
  Fuzz(const Options& options, runtime::Device& device)
      : options_(options), device_(device), trial_(device) {}

  // False when the device is lost.
  bool one_problem(int64_t number) {
    const Drawn drawn = draw_problem(device_.kind(), options_.seed, number);
    ++problems_;
    special_ += drawn.data.has_specials() ? 1 : 0;
    const std::clock_t begin = std::clock();
    const auto failure = trial_.run(drawn.sketch, drawn.data, drawn.effort);
    Shape& shape = shapes_[drawn.sketch.shape_class];
    ++shape.problems;
    shape.seconds += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!failure) return true;
    ++failures_;
    tell(drawn, number, *failure);
    return !failure->final;
  }

  bool failed() const { return failures_ > 0; }

  void report(double seconds) const {
    fmt::print("{}: {} problems, {:.0f} a second, {} with special values, {} failed\n", device_.label(),
               problems_, static_cast<double>(problems_) / seconds, special_, failures_);
    for (const auto& [name, shape] : shapes_)
      fmt::print("  {:<20} {} problems, {:.0f} a second of the processor\n", name, shape.problems,
                 static_cast<double>(shape.problems) / shape.seconds);
    for (const auto& [name, runs] : trial_.runs()) fmt::print("  {:<36} {} runs\n", name, runs);
  }

 private:
  void tell(const Drawn& drawn, int64_t number, const Failure& failure) {
    const char* const name = failure.candidate != nullptr ? failure.candidate->name() : "nobody";
    // A defect fails many problems; a few of each are enough to see what they have in common.
    constexpr int kTold = 3;
    if (++told_[fmt::format("{} {}", name, name_of(failure.result))] > kTold) return;
    fmt::print("FAILED {} {}: {}\n", name, name_of(failure.result), failure.what);
    fmt::print("  as drawn: \"{}\", {}\n", problem::to_text(*to_request(drawn.sketch)),
               to_string(drawn.data));
    std::fflush(stdout);
    const Trial::Smaller small = trial_.make_smaller(drawn.sketch, drawn.data, failure);
    fmt::print("  smaller:  {}\n", small.failure.what);
    fmt::print("  retrograd check --all-candidates \"{}\"\n", problem::to_text(*to_request(small.sketch)));
    fmt::print("  with {}\n", to_string(small.data));
    fmt::print("  again: candidates_fuzz 0 {} --device {} --problem {}\n", options_.seed,
               device_.kind() == runtime::DeviceKind::kCpu ? "cpu" : "cuda", number);
    std::fflush(stdout);
  }

  const Options& options_;
  runtime::Device& device_;
  Trial trial_;
  int64_t problems_ = 0, special_ = 0, failures_ = 0;
  struct Shape {
    int64_t problems = 0;
    double seconds = 0;
  };
  std::map<std::string, Shape> shapes_;
  std::map<std::string, int> told_;
};

bool read(int argc, char** argv, Options& options) {
  int position = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--keep-going") {
      options.keep_going = true;
    } else if (word == "--device" && has_value) {
      options.device = argv[++i];
    } else if (word == "--problem" && has_value) {
      options.problem = std::atoll(argv[++i]);
    } else if (!word.starts_with("-") && position < 2) {
      position++ == 0 ? void(options.seconds = std::atof(argv[i]))
                      : void(options.seed = std::strtoull(argv[i], nullptr, 10));
    } else {
      return false;
    }
  }
  return options.device == nullptr || std::string_view(options.device) == "cpu" ||
         std::string_view(options.device) == "cuda";
}

bool fuzz(const Options& options, runtime::Device& device, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Fuzz fuzz(options, device);
  if (options.problem >= 0) {
    fuzz.one_problem(options.problem);
  } else {
    for (int64_t number = 0; spent() < seconds && (options.keep_going || !fuzz.failed()); ++number)
      if (!fuzz.one_problem(number)) break;
  }
  fuzz.report(spent());
  return !fuzz.failed();
}

}  // namespace
}  // namespace retrograd::test

int main(int argc, char** argv) {
  using namespace retrograd;
  test::Options options;
  if (!test::read(argc, argv, options)) {
    fmt::print(stderr, "candidates_fuzz [SECONDS [SEED]] [--device cpu|cuda] [--keep-going] [--problem N]\n");
    return 2;
  }
  if (options.device != nullptr) setenv("RETROGRAD_TEST_DEVICES", options.device, 1);
  if (std::getenv("RETROGRAD_TEST_TILES") != nullptr && !kernels::cpu::let_pairs_stand_in_for_tiles()) {
    fmt::print("this machine has no products of bf16 pairs to stand in for tiles\n");
    return 0;
  }
  fmt::print("candidates_fuzz {} {}\n", options.seconds, options.seed);
  std::fflush(stdout);
  test::FaultGuard::install();
  const auto devices = test::devices_under_test();
  if (devices.empty()) {
    fmt::print(stderr, "there is no device {}\n", options.device);
    return 1;
  }
  bool right = true;
  for (runtime::Device* device : devices)
    right &= test::fuzz(options, *device, options.seconds / static_cast<double>(devices.size()));
  return right ? 0 : 1;
}
