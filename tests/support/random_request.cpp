// SPDX-License-Identifier: Apache-2.0
// Draws attributes first and sizes that fit them, so that nearly every draw is legal; the rest is drawn
// again.
#include "support/random_request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "problem/problem_text.h"
#include "problem/window.h"

namespace retrograd::test {
namespace {

using problem::AvgPoolRequest;
using problem::ConvRequest;
using problem::ConvTbcRequest;
using problem::TensorView;

class Draw {
 public:
  Draw(std::mt19937_64& random, const RandomOptions& options) : random_(random), options_(options) {}

  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool chance(int percent) { return number(1, 100) <= percent; }
  int64_t size() { return number(1, options_.largest_size); }
  int64_t channels() { return number(1, options_.most_channels); }
  int64_t groups() { return number(2, options_.most_groups); }
  int64_t kernel() { return number(1, options_.largest_kernel); }
  DType dtype(bool with_8bit) {
    while (options_.all_dtypes) {
      const auto drawn = static_cast<DType>(number(0, kDTypeCount - 1));
      if (with_8bit || !is_8bit(drawn)) return drawn;
    }
    return DType::kF32;
  }

  TensorView view(DType dtype, const Dims& shape, bool is_result) {
    TensorView v = problem::dense_view(dtype, shape);
    if (!options_.odd_strides || chance(40)) return v;
    std::vector<int> order(static_cast<size_t>(shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    int64_t step = number(1, 2);
    for (int axis : order) {
      v.strides[axis] = chance(20) ? -step : step;
      step = step * std::max<int64_t>(shape[axis], 1) + (chance(20) ? number(1, 3) : 0);
      if (!is_result && chance(10)) v.strides[axis] = 0;
    }
    return v;
  }

 private:
  std::mt19937_64& random_;
  const RandomOptions& options_;
};

ConvRequest draw_conv(Draw& draw) {
  ConvRequest r;
  const int axes = static_cast<int>(draw.number(1, 3));
  r.transposed = draw.chance(35);
  r.groups = draw.chance(60) ? 1 : draw.groups();
  const int64_t per_group_in = draw.channels(), per_group_out = draw.channels();
  const bool pairs = axes == 2 && draw.chance(30);
  Dims input{draw.number(1, 2), r.groups * per_group_in};
  Dims weight = r.transposed ? Dims{r.groups * per_group_in, per_group_out}
                             : Dims{r.groups * per_group_out, per_group_in};
  Dims grad_output{input[0], r.groups * per_group_out};
  for (int a = 0; a < axes; ++a) {
    const int64_t stride = draw.number(1, 3), dilation = draw.number(1, 3), kernel = draw.kernel();
    const int64_t lo = draw.number(0, 2), hi = pairs ? draw.number(0, 2) : lo;
    const int64_t extra = r.transposed ? draw.number(0, stride - 1) : 0;
    const int64_t in = draw.size();
    r.stride.push_back(stride);
    r.dilation.push_back(dilation);
    if (pairs) r.padding.push_back(lo);
    r.padding.push_back(hi);
    r.output_padding.push_back(extra);
    input.push_back(in);
    weight.push_back(kernel);
    const problem::WindowSizes sizes{in, kernel, stride, dilation, lo, hi};
    grad_output.push_back(
        (r.transposed ? transposed_output_size(sizes, in, 0, extra) : output_size(sizes)).value_or(0));
  }
  const DType type = draw.dtype(true);
  const bool eight_bit = is_8bit(type);
  const auto other = [&] { return !eight_bit && draw.chance(20) ? draw.dtype(false) : type; };
  const auto result = [&] { return eight_bit ? DType::kF32 : draw.chance(20) ? draw.dtype(false) : type; };
  r.input = draw.view(type, input, false);
  r.weight = draw.view(other(), weight, false);
  r.grad_output = draw.view(other(), grad_output, false);
  const int64_t mask = draw.chance(70) ? 7 : draw.number(1, 7);
  if (mask & 1) r.grad_input = draw.view(eight_bit && draw.chance(50) ? type : result(), input, true);
  if (mask & 2)
    r.grad_weight = draw.view(type == DType::kHiF8 && draw.chance(50) ? type : result(), weight, true);
  if (mask & 4) r.grad_bias = draw.view(result(), {grad_output[1]}, true);
  r.math_mode = draw.number(0, 3);
  return r;
}

ConvTbcRequest draw_conv_tbc(Draw& draw) {
  ConvTbcRequest r;
  const int64_t kernel = draw.kernel(), batch = draw.number(1, 3), c_in = draw.channels(),
                c_out = draw.channels(), t_in = draw.size();
  r.pad = draw.number(0, 3);
  const int64_t t_out = t_in + 2 * r.pad - kernel + 1;
  const DType type = draw.dtype(false);
  r.grad_output = draw.view(type, {std::max<int64_t>(t_out, 0), batch, c_out}, false);
  r.input = draw.view(type, {t_in, batch, c_in}, false);
  r.weight = draw.view(type, {kernel, c_in, c_out}, false);
  r.bias = draw.view(type, {c_out}, false);
  r.grad_input = draw.view(type, r.input.shape, true);
  r.grad_weight = draw.view(type, r.weight.shape, true);
  r.grad_bias = draw.view(type, r.bias.shape, true);
  r.math_mode = draw.number(0, 3);
  return r;
}

AvgPoolRequest draw_avgpool(Draw& draw) {
  AvgPoolRequest r;
  const int axes = static_cast<int>(draw.number(1, 3));
  Dims input{draw.number(1, 2), draw.number(1, 3)}, grad_output = input;
  r.ceil_mode = draw.chance(50);
  r.count_include_pad = draw.chance(50);
  r.divisor_override = draw.chance(25) ? draw.number(1, 9) : 0;
  r.uncorrected_ceil_sizes = draw.chance(30);
  for (int a = 0; a < axes; ++a) {
    const int64_t kernel = draw.number(1, 4), stride = draw.number(1, 4), pad = draw.number(0, kernel / 2);
    const problem::PoolWindow window{draw.size(), 0, kernel, stride, pad};
    r.kernel.push_back(kernel);
    r.stride.push_back(stride);
    r.padding.push_back(pad);
    input.push_back(window.x);
    grad_output.push_back(pool_output_size(window, r.ceil_mode, !r.uncorrected_ceil_sizes).value_or(0));
  }
  const DType type = draw.dtype(false);
  for (int64_t& size : std::span(&grad_output[0], static_cast<size_t>(grad_output.rank())))
    size = std::max<int64_t>(size, 0);
  r.input = draw.view(type, input, false);
  r.grad_output = draw.view(type, grad_output, false);
  r.grad_input = draw.view(type, input, true);
  return r;
}

template <class DrawOne>
problem::Request first_legal(std::mt19937_64& random, const RandomOptions& options, DrawOne draw_one) {
  Draw draw(random, options);
  for (int tries = 0; tries < 1000; ++tries) {
    auto request = draw_one(draw);
    if (problem::make_problem(request).is_ok()) return request;
  }
  ADD_FAILURE() << "no legal request in 1000 draws";
  return {};
}

}  // namespace

problem::Request random_conv(std::mt19937_64& random, const RandomOptions& options) {
  return first_legal(random, options, draw_conv);
}
problem::Request random_conv_tbc(std::mt19937_64& random, const RandomOptions& options) {
  return first_legal(random, options, draw_conv_tbc);
}
problem::Request random_avgpool(std::mt19937_64& random, const RandomOptions& options) {
  return first_legal(random, options, draw_avgpool);
}

problem::Problem legal_problem(const problem::Request& request) {
  auto result = problem::judge(request);
  EXPECT_TRUE(result.is_ok()) << result.status().message();
  return result.is_ok() ? std::move(result).value() : problem::Problem{};
}

}  // namespace retrograd::test
