// SPDX-License-Identifier: Apache-2.0
// Requests: what a caller asked for, as given and not yet judged. The text form prints and parses exactly
// these.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/product.h"
#include "problem/tensor_view.h"

namespace retrograd::problem {

// A forward request has the operands of the backward one: grad_output stands for the output, which is
// written, and of the gradients there is none.

// What each argument is called where the request came from, for messages.
struct ConvNames {
  const char* grad_output = "grad_output";
  const char* input = "input";
  const char* weight = "weight";
  const char* bias = "bias";
  const char* stride = "stride";
  const char* padding = "padding";
  const char* dilation = "dilation";
  const char* output_padding = "output_padding";
  const char* groups = "groups";
  const char* math_mode = "math";
  const char* grad_input = "grad_input";
  const char* grad_weight = "grad_weight";
  const char* grad_bias = "grad_bias";
  const char* bias_sizes = "bias_sizes";
};

struct PoolNames {
  const char* grad_output = "grad_output";
  const char* input = "input";
  const char* grad_input = "grad_input";
  const char* kernel = "kernel";
  const char* stride = "stride";
  const char* padding = "padding";
};

inline constexpr int64_t kAclnnMaxGroups = 65535;

// What a caller called the order of a tensor's axes, where the interface asks: product rules compare them.
enum class Format : unsigned char { kUnsaid, kNcl, kNd, kNchw, kNcdhw };
std::string_view name_of(Format format);  // "-", "ncl", "nd", "nchw", "ncdhw"

struct ConvFormats {
  Format grad_output = Format::kUnsaid, input = Format::kUnsaid, weight = Format::kUnsaid,
         grad_input = Format::kUnsaid, grad_weight = Format::kUnsaid;
};

// How products are made: read where the rounding of operands is chosen (conv_canonical.h).
struct ConvMath {
  int64_t mode = 0;  // cubeMathType, 0 to 3
  int hf32_mantissa_bits = 11;
  bool winograd = false;           // allowed by RETROGRAD_WINOGRAD; aclnn also wants mode 1
  std::optional<Product> product;  // its limits are enforced, its arithmetic followed (product_rules.h)
};

// Rules that differ by interface: read by conv_problem.cpp.
struct ConvRules {
  bool one_dtype = false;            // infiniop: all operands of one type; otherwise promotion
  bool asymmetric_any_rank = false;  // padding may hold lo, hi for every axis; otherwise in 2-D only
  int64_t max_groups = std::numeric_limits<int64_t>::max();  // aclnn: kAclnnMaxGroups

  bool follows_aclnn() const { return max_groups == kAclnnMaxGroups; }
};

// Arguments that only the rules of products read (product_rules.cpp).
struct ProductArguments {
  std::optional<std::vector<int64_t>> bias_sizes;
  ConvFormats formats;
};

// Convolution, backward or forward. Tensors are (N, C, spatial…), the weight (C_out, C_in/groups, k…), for a
// transposed convolution (C_in, C_out/groups, k…).
struct ConvRequest {
  bool forward = false;
  TensorView grad_output, input, weight;
  std::optional<TensorView> bias;                                // (C_out), forward only; nullopt: none
  std::optional<TensorView> grad_input, grad_weight, grad_bias;  // nullopt: not asked for
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
  ConvMath math;
  ConvRules rules;
  ProductArguments for_products;
  ConvNames names;
};

// conv_tbc, backward or forward: grad_output (T_out, B, C_out), input (T_in, B, C_in), weight (K, C_in,
// C_out), bias (C_out).
struct ConvTbcRequest {
  bool forward = false;
  TensorView grad_output, input, weight, bias;
  TensorView grad_input, grad_weight, grad_bias;
  int64_t pad = 0;
  ConvMath math;
  ConvNames names;
};

struct AvgPoolRequest {
  bool forward = false;
  TensorView grad_output, input, grad_input;
  std::vector<int64_t> kernel, stride, padding;  // one entry, or one an axis; an empty stride is the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;
  int64_t divisor_override = 0;

  int spatial_rank = 0;  // 0: rank − 2. Otherwise the batch axis may be missing
  bool uncorrected_ceil_sizes =
      false;  // infiniop: in ceil mode the size without last-window correction is legal too
  PoolNames names;
};

using Request = std::variant<ConvRequest, ConvTbcRequest, AvgPoolRequest>;

inline bool is_forward(const Request& request) {
  return std::visit([](const auto& r) { return r.forward; }, request);
}

}  // namespace retrograd::problem
