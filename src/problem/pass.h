// SPDX-License-Identifier: Apache-2.0
// Pass: the unit of work an engine takes. A call is at most three of them. Canonical form: three spatial axes
// (D, H, W), unit axes where the problem has fewer, transposed convolutions already rewritten as plain ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/dtype.h"
#include "problem/window.h"

namespace retrograd::problem {

// The operands of a call. Addresses are bound to these when a plan runs.
enum class Operand : unsigned char {
  kGradOutput,
  kInput,
  kWeight,
  kGradInput,
  kGradWeight,
  kGradBias,
  kBias,    // of forward problems
  kOutput,  // what they write
};
inline constexpr int kOperandCount = 8;
std::string_view name_of(Operand operand);  // "grad_output", …

// Element strides along (N, C, D, H, W); for weights (O, I, D, H, W).
using Strides5 = std::array<int64_t, 5>;

struct PassTensor {
  Operand operand = Operand::kInput;
  DType dtype = DType::kF32;
  Strides5 strides{};
};

// The plain convolution y = x ⋆ w, seen from one of its three sides:
// clang-format off
//   kForward     y[n,o,p] = Σ_{i,t} x[n,i,position(p,t)] · w[o,i,t]         also gradInput of a transposed convolution
//   kGradInput   x[n,i,q] = Σ_{o,t} y[n,o,output_reading(q,t)] · w[o,i,t]   also a transposed convolution itself
//   kGradWeight  w[o,i,t] = Σ_{n,p} x[n,i,position(p,t)] · y[n,o,p]
// clang-format on
// i runs over the x channels of o's group. The result is the operand on the left, the other two are read.
enum class ConvPassKind : unsigned char { kForward, kGradInput, kGradWeight };

struct ConvPass {
  ConvPassKind kind = ConvPassKind::kGradInput;
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t x_channels = 0;  // of all groups
  int64_t y_channels = 0;
  std::array<Window, 3> axes;
  PassTensor x, y, w;
  // Added to the sums of each channel of the result in FP32, not rounded before: forward problems only.
  // strides[1] is the only one that counts.
  std::optional<PassTensor> bias;
  OperandRounding rounding = OperandRounding::kNone;
  bool winograd_allowed = false;  // products of FP32 operands need not be exact (docs/numerics.md, Winograd)
  bool hf32_allowed = false;      // FP32 operands may be rounded to HF32 or, on a GPU, to TF32

  int64_t x_channels_per_group() const { return x_channels / groups; }
  int64_t y_channels_per_group() const { return y_channels / groups; }
  const PassTensor& result() const {
    return kind == ConvPassKind::kForward ? y : kind == ConvPassKind::kGradInput ? x : w;
  }
};

// grad_bias[c] = Σ_{n,d,h,w} grad_output[n,c,d,h,w]. Never rounds its operand.
struct BiasPass {
  int64_t batch = 0;
  int64_t channels = 0;
  std::array<int64_t, 3> spatial{1, 1, 1};
  PassTensor grad_output;
  PassTensor grad_bias;  // strides[1] is the only one that counts
  int64_t reduction_length() const { return batch * spatial[0] * spatial[1] * spatial[2]; }
};

// Average pooling y = pool(x), seen from one of its two sides:
//   grad_input   x[n,c,q] = Σ_{p : q in window p} y[n,c,p] / divisor(p)
//   forward      y[n,c,p] = Σ_{q in window p} x[n,c,q] / divisor(p)
struct AvgPoolPass {
  bool forward = false;
  int64_t batch = 0;
  int64_t channels = 0;
  std::array<PoolWindow, 3> axes;
  bool count_include_pad = true;
  int64_t divisor_override = 0;  // 0: the count of the window
  PassTensor y;
  PassTensor x;
  const PassTensor& result() const { return forward ? y : x; }
};

using Pass = std::variant<ConvPass, BiasPass, AvgPoolPass>;

// "forward", "grad_input", "grad_weight", "grad_bias", "avgpool", "avgpool_forward": logs and messages.
std::string_view name_of(const Pass& pass);
// The operand a pass writes.
const PassTensor& result_of(const Pass& pass);
// Whether the pass reads `operand`.
bool reads(const Pass& pass, Operand operand);

}  // namespace retrograd::problem
