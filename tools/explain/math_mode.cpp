// SPDX-License-Identifier: Apache-2.0
// Reads the effect off the judged passes, so that it is what the engines see.
#include "tools/explain/math_mode.h"

#include <fmt/format.h>

namespace retrograd::tools {
namespace {

const char* name_of_mode(int64_t mode) {
  constexpr const char* kNames[] = {"KEEP_DTYPE", "ALLOW_FP32_DOWN_PRECISION", "USE_FP16", "USE_HF32"};
  return mode >= 0 && mode < 4 ? kNames[mode] : "not legal";
}

std::string effect_on(const problem::ConvPass& pass, int64_t mode) {
  switch (pass.rounding) {
    case OperandRounding::kF16:
      return "FP32 operands are rounded to FP16 before they are multiplied; sums stay FP32";
    case OperandRounding::kHf32Bits11:
      return "FP32 operands are rounded to 11 mantissa bits before they are multiplied; sums stay FP32";
    case OperandRounding::kHf32Bits10:
      return "FP32 operands are rounded to 10 mantissa bits (RETROGRAD_HF32_BITS) before they are "
             "multiplied; "
             "sums stay FP32";
    case OperandRounding::kNone:
      break;
  }
  if (pass.hf32_allowed)
    return fmt::format("on a GPU operands may be rounded to TF32; {}; sums stay FP32",
                       pass.winograd_allowed ? "engines with fewer multiplications (Winograd) are allowed"
                                             : "on the CPU they are multiplied as they are");
  if (pass.winograd_allowed)
    return "operands are multiplied as they are; engines with fewer multiplications (Winograd) are allowed";
  return mode == 0 ? "operands are multiplied as they are, without Winograd"
                   : "changes nothing for these types: operands are multiplied as they are";
}

}  // namespace

std::string effect_of_math_mode(const problem::Problem& problem) {
  const auto* conv = std::get_if<problem::ConvRequest>(&problem.request);
  const auto* tbc = std::get_if<problem::ConvTbcRequest>(&problem.request);
  if (conv == nullptr && tbc == nullptr) return "";
  const int64_t mode = conv != nullptr ? conv->math.mode : tbc->math.mode;
  for (const problem::Pass& pass : problem.passes)
    if (const auto* products = std::get_if<problem::ConvPass>(&pass))
      return fmt::format("cubeMathType {} ({}): {}", mode, name_of_mode(mode), effect_on(*products, mode));
  return fmt::format("cubeMathType {} ({}): no products here", mode, name_of_mode(mode));
}

}  // namespace retrograd::tools
