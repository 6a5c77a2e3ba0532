// SPDX-License-Identifier: Apache-2.0
// Walks the products of a forward operator as its definition states them, axis by axis.
#include "support/oracle.h"

#include <cmath>

namespace retrograd::test {

size_t flat_index(const Dims& shape, const Dims& index) {
  int64_t flat = 0;
  for (int i = 0; i < shape.rank(); ++i) flat = flat * shape[i] + index[i];
  return static_cast<size_t>(flat);
}

namespace {

using problem::AvgPoolRequest;
using problem::ConvRequest;
using problem::ConvTbcRequest;
using problem::Operand;

// Counts through all values below `limits`.
void for_each_index(const Dims& limits, const std::function<void(const Dims&)>& visit) {
  for (int64_t limit : limits)
    if (limit <= 0) return;
  Dims index = Dims::filled(limits.rank(), 0);
  while (true) {
    visit(index);
    int axis = index.rank() - 1;
    for (; axis >= 0; --axis) {
      if (++index[axis] < limits[axis]) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

Dims tail(const Dims& dims, int first) {
  Dims rest;
  for (int i = first; i < dims.rank(); ++i) rest.push_back(dims[i]);
  return rest;
}

size_t volume(const Dims& dims) {
  int64_t product = 1;
  for (int64_t size : dims) product *= size;
  return static_cast<size_t>(product);
}

void terms(const ConvRequest& r, const std::function<void(const Term&)>& visit) {
  const int axes = r.input.shape.rank() - 2;
  // The strided side steps over the wide side: outputs over inputs, or (transposed) inputs over outputs.
  const Dims& strided = r.transposed ? r.input.shape : r.grad_output.shape;
  const Dims& wide = r.transposed ? r.grad_output.shape : r.input.shape;
  const Dims strided_space = tail(strided, 2), wide_space = tail(wide, 2), taps = tail(r.weight.shape, 2);
  const size_t strided_plane = volume(strided_space), wide_plane = volume(wide_space), kernel = volume(taps);
  const bool pad_pairs = static_cast<int>(r.padding.size()) == 2 * axes && axes > 0;
  const bool extra_pairs = static_cast<int>(r.output_padding.size()) == 2 * axes;
  const auto batch = static_cast<size_t>(strided[0]), groups = static_cast<size_t>(r.groups);
  const size_t strided_group = static_cast<size_t>(r.weight.shape[0]) / groups;
  const auto wide_group = static_cast<size_t>(r.weight.shape[1]);
  for_each_index(strided_space, [&](const Dims& s) {
    for_each_index(taps, [&](const Dims& tap) {
      Dims place;
      for (int a = 0; a < axes; ++a) {
        const auto i = static_cast<size_t>(a);
        const int64_t pad = r.padding[pad_pairs ? 2 * i : i] - (extra_pairs ? r.output_padding[2 * i] : 0);
        const int64_t at = s[a] * r.stride[i] + tap[a] * r.dilation[i] - pad;
        if (at < 0 || at >= wide_space[a]) return;
        place.push_back(at);
      }
      const size_t s_at = flat_index(strided_space, s), w_at = flat_index(wide_space, place),
                   tap_at = flat_index(taps, tap);
      for (size_t n = 0; n < batch; ++n)
        for (size_t g = 0; g < groups; ++g)
          for (size_t o = g * strided_group; o < (g + 1) * strided_group; ++o)
            for (size_t i = 0; i < wide_group; ++i) {
              const size_t narrow = (n * groups * strided_group + o) * strided_plane + s_at;
              const size_t broad = (n * groups * wide_group + g * wide_group + i) * wide_plane + w_at;
              const size_t weight = (o * wide_group + i) * kernel + tap_at;
              visit(r.transposed ? Term{broad, narrow, weight} : Term{narrow, broad, weight});
            }
    });
  });
}

void terms(const ConvTbcRequest& r, const std::function<void(const Term&)>& visit) {
  for_each_index(
      {r.grad_output.shape[0], r.weight.shape[0], r.input.shape[1], r.weight.shape[1], r.weight.shape[2]},
      [&](const Dims& i) {
        const int64_t t = i[0] + i[1] - r.pad;
        if (t < 0 || t >= r.input.shape[0]) return;
        visit({flat_index(r.grad_output.shape, {i[0], i[2], i[4]}),
               flat_index(r.input.shape, {t, i[2], i[3]}), flat_index(r.weight.shape, {i[1], i[3], i[4]})});
      });
}

void terms(const AvgPoolRequest& r, const std::function<void(const Term&)>& visit) {
  const int rank = r.input.shape.rank();
  const int axes = r.spatial_rank > 0 ? r.spatial_rank : rank - 2;
  const int first = rank - axes;
  const auto entry = [&](const std::vector<int64_t>& values, int a) {
    return values.size() == 1 ? values[0] : values[static_cast<size_t>(a)];
  };
  for_each_index(r.grad_output.shape, [&](const Dims& out) {
    double padded = 1, inside = 1;
    Dims begin, extent;
    for (int a = 0; a < axes; ++a) {
      const int64_t in = r.input.shape[first + a], kernel = entry(r.kernel, a), pad = entry(r.padding, a);
      const int64_t start = out[first + a] * (r.stride.empty() ? kernel : entry(r.stride, a)) - pad;
      const int64_t lo = std::max<int64_t>(start, 0), hi = std::min(start + kernel, in);
      if (hi <= lo) return;
      begin.push_back(lo);
      extent.push_back(hi - lo);
      inside *= static_cast<double>(hi - lo);
      padded *= static_cast<double>(std::min(start + kernel, in + pad) - start);
    }
    const double divisor = r.divisor_override != 0 ? static_cast<double>(r.divisor_override)
                           : r.count_include_pad   ? padded
                                                   : inside;
    for_each_index(extent, [&](const Dims& e) {
      Dims in = out;
      for (int a = 0; a < axes; ++a) in[first + a] = begin[a] + e[a];
      visit({flat_index(r.grad_output.shape, out), flat_index(r.input.shape, in), 0, 1 / divisor});
    });
  });
}

OperandRounding rounding_of(const problem::Request& request) {
  const auto* conv = std::get_if<ConvRequest>(&request);
  const auto* tbc = std::get_if<ConvTbcRequest>(&request);
  const int64_t mode = conv ? conv->math_mode : tbc ? tbc->math_mode : 0;
  const bool fp32 = conv  ? problem::promote(*conv).value() == DType::kF32
                    : tbc ? tbc->grad_output.dtype == DType::kF32
                          : false;
  if (!fp32 || mode < 2) return OperandRounding::kNone;
  return mode == 2 ? OperandRounding::kF16 : OperandRounding::kHf32Bits11;
}

std::vector<double> flatten(const HostTensor& tensor, OperandRounding rounding) {
  std::vector<double> values;
  tensor.for_each(
      [&](const Dims& index) { values.push_back(apply(rounding, static_cast<float>(tensor.get(index)))); });
  return values;
}

}  // namespace

int channel_axis(const problem::Request& request) {
  return std::holds_alternative<ConvTbcRequest>(request) ? 2 : 1;
}

void for_each_term(const problem::Request& request, const std::function<void(const Term&)>& visit) {
  std::visit([&](const auto& r) { terms(r, visit); }, request);
}

Gradients gradients_by_scattering(const problem::Request& request, const Operands& operands) {
  const OperandRounding rounding = rounding_of(request);
  const HostTensor& gy = *operands[Operand::kGradOutput];
  const HostTensor& x = *operands[Operand::kInput];
  const bool has_weight = operands[Operand::kWeight].has_value();
  const auto rounded_gy = flatten(gy, rounding), rounded_x = flatten(x, rounding);
  const auto rounded_w =
      has_weight ? flatten(*operands[Operand::kWeight], rounding) : std::vector<double>{1.0};

  Gradients g;
  g.grad_input.assign(rounded_x.size(), 0);
  g.grad_weight.assign(rounded_w.size(), 0);
  g.grad_input_magnitude = g.grad_input;
  g.grad_weight_magnitude = g.grad_weight;
  std::vector<int64_t> input_terms(rounded_x.size(), 0), weight_terms(rounded_w.size(), 0);
  for_each_term(request, [&](const Term& term) {
    const auto& [out, in, w, scale] = term;
    const double to_input = rounded_gy[out] * rounded_w[w] * scale,
                 to_weight = rounded_gy[out] * rounded_x[in];
    g.grad_input[in] += to_input;
    g.grad_input_magnitude[in] += std::abs(to_input);
    g.grad_weight[w] += to_weight;
    g.grad_weight_magnitude[w] += std::abs(to_weight);
    g.longest_sum = std::max({g.longest_sum, ++input_terms[in], ++weight_terms[w]});
  });

  const int channel = channel_axis(request);
  g.grad_bias.assign(static_cast<size_t>(gy.view().shape[channel]), 0);
  g.grad_bias_magnitude = g.grad_bias;
  gy.for_each([&](const Dims& index) {
    const auto c = static_cast<size_t>(index[channel]);
    g.grad_bias[c] += gy.get(index);
    g.grad_bias_magnitude[c] += std::abs(gy.get(index));
  });
  return g;
}

Loss::Loss(const problem::Request& request, const Operands& operands) {
  const OperandRounding none = OperandRounding::kNone;
  const HostTensor& gy = *operands[Operand::kGradOutput];
  const HostTensor& x = *operands[Operand::kInput];
  const bool has_weight = operands[Operand::kWeight].has_value();
  input = flatten(x, none);
  grad_output = flatten(gy, none);
  weight = has_weight ? flatten(*operands[Operand::kWeight], none) : std::vector<double>{1.0};
  bias.assign(static_cast<size_t>(gy.view().shape[channel_axis(request)]), 0.5);
  for_each_term(request, [&](const Term& t) { terms_.push_back(t); });
  gy.for_each([&](const Dims& index) {
    channel_of_output_.push_back(static_cast<size_t>(index[channel_axis(request)]));
  });
}

double Loss::operator()(const std::vector<double>& x, const std::vector<double>& w,
                        const std::vector<double>& b) const {
  std::vector<double> out(grad_output.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = b[channel_of_output_[i]];
  for (const Term& t : terms_) out[t.out] += t.scale * x[t.in] * w[t.w];
  double loss = 0;
  for (size_t i = 0; i < out.size(); ++i) loss += grad_output[i] * out[i];
  return loss;
}

}  // namespace retrograd::test
