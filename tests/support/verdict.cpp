// SPDX-License-Identifier: Apache-2.0
// The rules of docs/numerics.md, element by element.
#include "support/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

namespace retrograd::test {
namespace {

using problem::Operand;

constexpr double kLargestFloat = std::numeric_limits<float>::max();

double rounded(DType dtype, double value) {
  uint32_t word = 0;
  store_from_f32(dtype, &word, static_cast<float>(value));
  return load_as_f32(dtype, &word);
}

class Judge {
 public:
  Judge(DType dtype, const Gradient& expected, const Standard& standard)
      : dtype_(dtype), expected_(expected), standard_(standard) {
    if (standard.winograd)
      for (double value : expected.values)
        if (std::isfinite(value)) largest_ = std::max(largest_, std::abs(value));
  }

  // Why the element is wrong; null where it is right.
  const char* complaint(size_t i, uint32_t bits) {
    const double value = load_as_f32(dtype_, &bits), exact = expected_.values[i];
    if (expected_.terms[i] == 0) return bits == 0 ? nullptr : "a place without terms is +0";
    if (!std::isfinite(exact)) return about_nonfinite(value, exact);
    if (standard_.exact_bits && !standard_.winograd) {
      uint32_t right = 0;
      store_from_f32(dtype_, &right, static_cast<float>(exact));
      const bool both_nan = std::isnan(value) && std::isnan(load_as_f32(dtype_, &right));
      return bits == right || both_nan ? nullptr : "the bits of the exact sum are expected";
    }
    return about_value(i, value, exact);
  }
  double bound() const { return bound_; }  // of the last element that had one

 private:
  const char* about_nonfinite(double value, double exact) const {
    const double right = rounded(dtype_, exact);  // a type without infinities has NaN instead
    if (std::isnan(right) ? std::isnan(value) : value == right) return nullptr;
    // An infinity may meet an opposite one that finite terms have overflowed to, or one of a transform.
    // Where operands are rounded, a small one may be zero and make NaN.
    if ((standard_.may_overflow || standard_.winograd || standard_.rounds_operands) && !std::isfinite(value))
      return nullptr;
    return std::isnan(exact) ? "a term is NaN, or infinities of both signs meet" : "a term is infinite";
  }

  const char* about_value(size_t i, double value, double exact) {
    const int64_t terms = expected_.terms[i];
    const double magnitude = expected_.magnitudes[i];
    if (standard_.winograd) {
      if (standard_.has_nonfinite || standard_.may_overflow) return nullptr;  // spread over tiles, by intent
      // Transforms multiply the smallest numbers, too.
      bound_ = reduced_precision_bound(largest_) +
               sum_bound(DType::kF32, 0, 0, 48 * (terms + 36), Accumulation::kFloat);
    } else {
      // A GPU, and pooling forward, add before they divide by the size of a pooling window.
      const double undivided = standard_.on_gpu || standard_.divides_last ? 4096 : 2;
      if (standard_.may_overflow && magnitude > kLargestFloat / undivided) return nullptr;
      // The largest numbers are rounded to infinities, which make NaN of a zero.
      if (standard_.may_overflow && standard_.rounds_operands && !std::isfinite(value)) return nullptr;
      bound_ = sum_bound(DType::kF32, exact, magnitude, terms + 1, standard_.accumulation) +
               standard_.product_error * magnitude + lost_small_products(terms, standard_.largest_operand);
      // Tensor cores line products up by the operands' exponents, and a denormal operand is not normalised
      // first: what is 2^-23 of (largest operand x smallest normal number) may be lost with each 8 terms.
      // Whatever the type of the result.
      if (standard_.on_gpu)
        bound_ += (static_cast<double>(terms) / 8 + 2) * std::ldexp(standard_.largest_operand, -23) *
                  standard_.smallest_normal;
    }
    // Rounding keeps the order, so the result lies between the rounded ends.
    const double low = rounded(dtype_, exact - bound_), high = rounded(dtype_, exact + bound_);
    if (std::isnan(value)) return std::isnan(low) || std::isnan(high) ? nullptr : "all terms are finite";
    if (!(value < low) && !(value > high)) return nullptr;
    return standard_.winograd ? "it is beyond what reduced precision allows"
                              : "it is beyond the bound of its sum";
  }

  DType dtype_;
  const Gradient& expected_;
  const Standard& standard_;
  double largest_ = 0, bound_ = 0;
};

}  // namespace

Standard standard_of(const DataSketch& data, const Operands& operands, runtime::DeviceKind device) {
  Standard standard;
  standard.exact_bits = data.numbers == DataSketch::Numbers::kIntegers && !data.has(Special::kDenormal) &&
                        !data.has(Special::kLargest) && !data.has(Special::kMinusZero);
  if (!data.has_specials()) return standard;
  const bool may_lose = data.has(Special::kDenormal) && device == runtime::DeviceKind::kCuda;
  for (Operand operand : kSources) {
    if (!operands[operand]) continue;
    const HostTensor& tensor = *operands[operand];
    // 8-bit types are multiplied as FP16.
    const DType dtype = tensor.view().dtype;
    if (dtype != DType::kF32)
      standard.smallest_normal =
          std::max(standard.smallest_normal, dtype == DType::kBF16 ? 0x1p-126 : 0x1p-14);
    tensor.for_each_byte([&](size_t byte) {
      const double value = load_as_f32(tensor.view().dtype, tensor.storage().data() + byte);
      if (!std::isfinite(value)) {
        standard.has_nonfinite = true;
      } else {
        if (may_lose) standard.largest_operand = std::max(standard.largest_operand, std::abs(value));
        if (std::abs(value) > 0x1p60) standard.may_overflow = true;
      }
    });
  }
  return standard;
}

Standard standard_for(const engines::Candidate& candidate, runtime::DeviceKind device,
                      const Standard& of_data) {
  Standard standard = of_data;
  const bool on_gpu = device == runtime::DeviceKind::kCuda;
  standard.winograd = candidate.reduces_precision() && !on_gpu;
  // On a GPU, products in FP32 are three of TF32 numbers, which lose what is below 2^-21 of them; where one
  // is allowed, operands are off by at most 2^-11 of themselves.
  standard.on_gpu = on_gpu;
  standard.rounds_operands = candidate.reduces_precision() && on_gpu;
  if (on_gpu) standard.product_error = standard.rounds_operands ? std::ldexp(1.001, -10) : std::ldexp(1, -20);
  if (std::string_view(candidate.name()) == "reference") standard.accumulation = Accumulation::kDouble;
  return standard;
}

std::optional<std::string> find_error(const HostTensor& result, const Gradient& expected,
                                      const Standard& standard) {
  const DType dtype = result.view().dtype;
  const size_t width = size_of(dtype);
  Judge judge(dtype, expected, standard);
  size_t i = 0, wrong = 0;
  std::string first;
  result.for_each_byte([&](size_t byte) {
    uint32_t bits = 0;
    std::memcpy(&bits, result.storage().data() + byte, width);  // little-endian
    if (const char* complaint = judge.complaint(i, bits); complaint != nullptr && ++wrong == 1)
      first = fmt::format("element {} is {} (bits {:#x}), expected {} of {} terms, bound {:.3g}: {}", i,
                          load_as_f32(dtype, &bits), bits, expected.values[i], expected.terms[i],
                          judge.bound(), complaint);
    ++i;
  });
  if (wrong > 0) return fmt::format("{} of {} wrong; {}", wrong, i, first);
  if (!result.gaps_untouched()) return "bytes between the elements were written";
  return std::nullopt;
}

}  // namespace retrograd::test
