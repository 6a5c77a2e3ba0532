// SPDX-License-Identifier: Apache-2.0
// Exact data: small integers, every sum exact in FP32, so the bits must be those of the exact result rounded
// once. Random data: each element within the bound derived from type, length and magnitude of its sum, and
// the tensor as a whole within formats' tighter one.
#include "tools/check/check_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "engines/machines.h"
#include "engines/reference/passes.h"
#include "runtime/thread_pool.h"
#include "support/operands.h"
#include "support/tolerance.h"
#include "tools/check/element_index.h"
#include "tools/measure/aligned_block.h"
#include "tools/measure/implementation_times.h"

namespace retrograd::tools {
namespace {

using engines::reference::Index5;
using engines::reference::ResultShape;
using problem::Operand;
using test::HostTensor;
using test::Operands;

constexpr double kL2Bound = 2e-6;             // times 1 + log2 of the terms
constexpr double kCorrectlyRounded = 0.98;    // of the elements, FP16 and BF16
constexpr double kLargestExactSum = 1 << 24;  // integers up to here are exact in FP32

ResultShape shape_of(const problem::Pass& pass) {
  return std::visit([](const auto& p) { return engines::reference::result_shape(p); }, pass);
}

uint32_t bits_at(DType dtype, const std::byte* address) {
  uint32_t word = 0;
  std::copy_n(address, size_of(dtype), reinterpret_cast<std::byte*>(&word));  // little-endian
  return word;
}
uint32_t rounded_bits(DType dtype, double value) {
  uint32_t word = 0;
  store_from_f32(dtype, &word, static_cast<float>(value));
  return word;
}
double rounded(DType dtype, double value) {
  const uint32_t bits = rounded_bits(dtype, value);
  return load_as_f32(dtype, &bits);
}
double ulp_of(DType dtype, double value) { return 2 * test::half_ulp(dtype, value); }

class Check final : public PassCheck {
 public:
  Check(const problem::Problem& problem, size_t pass, Data data, const CheckOptions& options)
      : device_(options.device),
        problem_(with_pass(problem, pass)),
        request_(problem.request),
        pass_(problem.passes[pass]),
        data_(data),
        shape_(shape_of(pass_)),
        operands_(problem.request) {
    std::mt19937_64 random(options.seed);
    const int limit = 4 * static_cast<double>(shape_.terms) < kLargestExactSum ? 2 : 1;
    data == Data::kExact ? operands_.fill_integers(random, limit) : operands_.fill_normal(random, 1.0);
    choose_sample(options);
    exact_ = sums(operands_);
    if (data == Data::kRandom) find_magnitudes();
  }

  Finding judge(const engines::Candidate& candidate) override {
    operands_.poison_results();
    Finding finding;
    if (const Status status = run(candidate); !status.is_ok()) {
      finding.ok = false;
      finding.why = status.message();
      return finding;
    }
    finding.compared = static_cast<int64_t>(sample_.size());
    finding.elements = count();
    // On a GPU less precision means operands rounded to TF32, which small integers are.
    const bool rounds = candidate.reduces_precision() && on_gpu();
    if (data_ == Data::kExact && (rounds || !candidate.reduces_precision())) {
      compare_bits(finding);
    } else {
      compare_values(candidate.reduces_precision(), rounds, finding);
    }
    look_beside(finding);
    return finding;
  }

 private:
  bool on_gpu() const { return device_ != nullptr && device_->kind() != runtime::DeviceKind::kCpu; }
  int64_t count() const {
    const Index5& s = shape_.sizes;
    return s.n * s.c * s.d * s.h * s.w;
  }
  Index5 index_at(int64_t flat) const {
    const Index5& s = shape_.sizes;
    Index5 i{};
    i.w = flat % s.w, flat /= s.w;
    i.h = flat % s.h, flat /= s.h;
    i.d = flat % s.d, flat /= s.d;
    i.c = flat % s.c, i.n = flat / s.c;
    return i;
  }

  // All elements, or one at a random place of each of equal parts, first and last among them.
  void choose_sample(const CheckOptions& options) {
    constexpr int64_t kFewest = 256;
    const int64_t all = count();
    const int64_t wanted =
        options.full ? all : std::max(kFewest, options.products / std::max<int64_t>(shape_.terms, 1));
    std::mt19937_64 random(options.seed);
    for (int64_t i = 0; i < std::min(wanted, all); ++i) {
      if (wanted >= all) {
        sample_.push_back(index_at(i));
        continue;
      }
      const auto edge = [&](int64_t part) {
        return static_cast<int64_t>(static_cast<double>(all) * static_cast<double>(part) /
                                    static_cast<double>(wanted));
      };
      std::uniform_int_distribution<int64_t> place(edge(i), std::max(edge(i), edge(i + 1) - 1));
      sample_.push_back(index_at(i == 0 ? 0 : i == wanted - 1 ? all - 1 : place(random)));
    }
  }

  std::vector<double> sums(Operands& operands) {
    std::vector<double> values(sample_.size());
    const engines::Bindings bindings = operands.bindings();
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(shape_.terms, 1));
    runtime::ThreadPool::instance().parallel_for(
        static_cast<int64_t>(sample_.size()), grain, [&](int64_t begin, int64_t end) {
          for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
            values[i] = engines::reference::exact_element(pass_, bindings, sample_[i]);
        });
    return values;
  }

  // Σ |terms|: the same sums over absolute values.
  void find_magnitudes() {
    Operands absolute = operands_;
    for (Operand operand : test::kSources) {
      if (!absolute[operand] || !reads(pass_, operand)) continue;
      HostTensor& tensor = *absolute[operand];
      tensor.for_each([&](const Dims& index) { tensor.set(index, std::abs(tensor.get(index))); });
    }
    magnitude_ = sums(absolute);
  }

  Status run(const engines::Candidate& candidate) {
    if (on_gpu()) {
      const engines::Candidate* const list[] = {&candidate};
      return test::run_on(*device_, problem_, operands_, list);
    }
    const auto step = candidate.make_step(pass_, engines::machine_of(runtime::DeviceKind::kCpu));
    const AlignedBlock workspace = allocate_block(step->workspace_bytes());
    std::fill_n(workspace.get(), step->workspace_bytes(), std::byte{0xFF});
    runtime::ExecutionContext context;
    context.pool = &runtime::ThreadPool::instance();
    step->run(operands_.bindings(), workspace.get(), context);
    return Status::ok();
  }

  const problem::PassTensor& result() const { return result_of(pass_); }
  const std::byte* result_at(const Index5& index) {
    const auto width = static_cast<int64_t>(size_of(result().dtype));
    return static_cast<const std::byte*>(operands_[result().operand]->data()) +
           engines::reference::element_offset(result().strides, index) * width;
  }

  void note_worst(size_t i, double value, double of_bound, Finding& finding) {
    if (!finding.index.empty() && !(of_bound > finding.of_bound)) return;
    finding.index = element_index(request_, pass_, sample_[i]);
    finding.result = value;
    finding.exact = exact_[i];
    finding.ulp = std::abs(value - exact_[i]) / ulp_of(result().dtype, exact_[i]);
    finding.of_bound = of_bound;
  }

  void compare_bits(Finding& finding) {
    const DType dtype = result().dtype;
    for (size_t i = 0; i < sample_.size(); ++i) {
      const std::byte* at = result_at(sample_[i]);
      if (bits_at(dtype, at) == rounded_bits(dtype, exact_[i])) continue;
      ++finding.wrong;
      const double value = load_as_f32(dtype, at);
      const double error = std::abs(value - exact_[i]);
      note_worst(i, value, std::isnan(error) ? HUGE_VAL : error, finding);
    }
    if (finding.wrong == 0) return;
    finding.ok = false;
    finding.why = "results of exact data must have the bits of the exact sum";
  }

  // rounds: operands, to TF32, each of which is off by at most 2^-11 of itself.
  void compare_values(bool reduced, bool rounds, Finding& finding) {
    const DType dtype = result().dtype;
    double largest = 0;
    for (double each : exact_) largest = std::max(largest, std::abs(each));
    for (size_t i = 0; i < sample_.size(); ++i) {
      const double value = load_as_f32(dtype, result_at(sample_[i]));
      const double bound = reduced && !rounds ? test::reduced_precision_bound(largest)
                                              : test::sum_bound(dtype, exact_[i], magnitude_[i], shape_.terms,
                                                                test::Accumulation::kFloat) +
                                                    (rounds ? std::ldexp(1.001, -10) * magnitude_[i] : 0);
      double of_bound = std::abs(value - exact_[i]) / bound;
      if (std::isnan(of_bound)) of_bound = HUGE_VAL;
      if (std::abs(value - exact_[i]) == 0 || overflows_too(dtype, value, exact_[i], bound)) of_bound = 0;
      if (of_bound > 1) ++finding.wrong;
      note_worst(i, value, of_bound, finding);
    }
    if (finding.wrong > 0) {
      finding.ok = false;
      finding.why = rounds ? "the error is beyond what operands rounded to TF32 allow"
                    : reduced
                        ? "the error is beyond what reduced precision allows, 3e-5 of the largest result"
                        : "the error is beyond the bound of a sum of that length and magnitude";
    } else if (!reduced) {
      judge_tensor(finding);
    }
  }

  // Beyond the largest number of a type, Inf or NaN is the right answer.
  static bool overflows_too(DType dtype, double value, double exact, double bound) {
    return !std::isfinite(value) && (!std::isfinite(rounded(dtype, exact)) ||
                                     !std::isfinite(rounded(dtype, exact + std::copysign(bound, exact))));
  }

  void judge_tensor(Finding& finding) {
    const DType dtype = result().dtype;
    double errors = 0, squares = 0;
    for (size_t i = 0; i < sample_.size(); ++i) {
      const double value = load_as_f32(dtype, result_at(sample_[i]));
      if (!std::isfinite(value)) continue;
      errors += (value - exact_[i]) * (value - exact_[i]);
      squares += exact_[i] * exact_[i];
    }
    const double allowed = kL2Bound * (1 + std::log2(std::max<double>(1, static_cast<double>(shape_.terms))));
    if (dtype == DType::kF32 && squares > 0) {
      const double found = std::sqrt(errors / squares);
      finding.why = fmt::format("relative L2 error {:.2g} of {:.2g}", found, allowed);
      finding.ok = found <= allowed;
    } else if (dtype == DType::kF16 || dtype == DType::kBF16) {
      const double typical = std::sqrt(squares / static_cast<double>(std::max<size_t>(sample_.size(), 1)));
      judge_rounding(allowed * typical, finding);
    }
  }

  // Cancellation aside: where the FP32 error that is allowed alone makes half a unit in the last place.
  void judge_rounding(double sum_error, Finding& finding) {
    const DType dtype = result().dtype;
    int64_t judged = 0, correct = 0, far = 0;
    for (size_t i = 0; i < sample_.size(); ++i) {
      const double best = rounded(dtype, exact_[i]);
      if (!std::isfinite(best) || test::half_ulp(dtype, exact_[i]) < sum_error) continue;
      const std::byte* at = result_at(sample_[i]);
      ++judged;
      if (bits_at(dtype, at) == rounded_bits(dtype, exact_[i])) ++correct;
      if (std::abs(load_as_f32(dtype, at) - best) >
          ulp_of(dtype, std::max(std::abs(best), std::abs(exact_[i]))))
        ++far;
    }
    if (judged == 0) return;
    const double share = static_cast<double>(correct) / static_cast<double>(judged);
    finding.why = fmt::format("{:.2f} % correctly rounded of {:.0f} %, {} further than 1 ulp", 100 * share,
                              100 * kCorrectlyRounded, far);
    // One element in a short tensor is more than two per cent of it.
    finding.ok = far == 0 && (share >= kCorrectlyRounded || judged - correct <= 1);
  }

  // Whatever was compared: elements that were never written, bytes between elements that were.
  void look_beside(Finding& finding) {
    const HostTensor& tensor = *operands_[result().operand];
    if (!tensor.gaps_untouched()) {
      finding.ok = false;
      finding.why = "bytes between the elements were written";
    }
    // In these types no sum of the integers has the bits of the poison.
    if (data_ != Data::kExact || is_8bit(result().dtype)) return;
    const HostTensor untouched(problem::dense_view(result().dtype, {1}));
    const uint32_t poison = untouched.bits()[0];
    const std::vector<uint32_t> bits = tensor.bits();
    const auto left = std::count(bits.begin(), bits.end(), poison);
    if (left == 0) return;
    finding.ok = false;
    finding.why = fmt::format("{} elements were never written", left);
  }

  runtime::Device* device_;
  problem::Problem problem_;  // of this pass alone
  problem::Request request_;
  problem::Pass pass_;
  Data data_;
  ResultShape shape_;
  Operands operands_;
  std::vector<Index5> sample_;
  std::vector<double> exact_, magnitude_;
};

}  // namespace

Result<std::unique_ptr<PassCheck>> PassCheck::make(const problem::Problem& problem, size_t pass, Data data,
                                                   const CheckOptions& options) {
  double bytes = 0;
  for (const problem::OperandFacts& facts : problem.operands)
    bytes += static_cast<double>(facts.end_byte - facts.lowest_byte);
  RG_TRY(const auto info, runtime::find_device(runtime::DeviceKind::kCpu, 0)->memory_info());
  constexpr double kCopies = 8;  // of a tensor at most: values, absolute values, bits, a flag a byte
  if (kCopies * bytes > static_cast<double>(info.free_bytes))
    return Status(Code::kOutOfMemory, fmt::format("no memory to check tensors of {:.0f} bytes", bytes));
  return std::unique_ptr<PassCheck>(std::make_unique<Check>(problem, pass, data, options));
}

problem::Request with_exact_sums(problem::Request request) {
  if (auto* pool = std::get_if<problem::AvgPoolRequest>(&request)) pool->divisor_override = 4;
  return request;
}

}  // namespace retrograd::tools
