// SPDX-License-Identifier: Apache-2.0
// Walks the products of a forward operator as its definition states them, axis by axis.
#include "support/oracle.h"

#include <algorithm>
#include <utility>

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

// One step of the strided side, a tap, and the place of the wide side that they meet at; live ones only.
struct Meeting {
  int64_t step, tap, place;
};
struct Axis {
  int64_t steps = 1, taps = 1, places = 1;
  std::vector<Meeting> meetings{{0, 0, 0}};
};

void conv_axis(const ConvRequest& r, int a, Axis& axis) {
  const auto i = static_cast<size_t>(a);
  const int axes = r.input.shape.rank() - 2;
  const bool pad_pairs = static_cast<int>(r.padding.size()) == 2 * axes;
  const bool extra_pairs = static_cast<int>(r.output_padding.size()) == 2 * axes;
  const int64_t pad = r.padding[pad_pairs ? 2 * i : i] - (extra_pairs ? r.output_padding[2 * i] : 0);
  // The strided side steps over the wide side: outputs over inputs, or (transposed) inputs over outputs.
  axis.steps = (r.transposed ? r.input : r.grad_output).shape[a + 2];
  axis.places = (r.transposed ? r.grad_output : r.input).shape[a + 2];
  axis.taps = r.weight.shape[a + 2];
  axis.meetings.clear();
  for (int64_t step = 0; step < axis.steps; ++step)
    for (int64_t tap = 0; tap < axis.taps; ++tap)
      if (const int64_t at = step * r.stride[i] + tap * r.dilation[i] - pad; at >= 0 && at < axis.places)
        axis.meetings.push_back({step, tap, at});
}

template <class Visit>
void terms(const ConvRequest& r, Visit&& visit) {
  const int axes = r.input.shape.rank() - 2;
  Axis axis[3];  // those that a problem does not have come first, with one place each
  for (int a = 0; a < axes; ++a) conv_axis(r, a, axis[3 - axes + a]);
  const auto flat = [&](int64_t Axis::*size, int64_t d, int64_t h, int64_t w) {
    return static_cast<size_t>((d * axis[1].*size + h) * axis[2].*size + w);
  };
  const auto volume = [&](int64_t Axis::*size) {
    return static_cast<size_t>(axis[0].*size * axis[1].*size * axis[2].*size);
  };
  const size_t steps = volume(&Axis::steps), places = volume(&Axis::places), taps = volume(&Axis::taps);
  const auto batch = static_cast<size_t>(r.input.shape[0]), groups = static_cast<size_t>(r.groups);
  const size_t strided_group = static_cast<size_t>(r.weight.shape[0]) / groups;
  const auto wide_group = static_cast<size_t>(r.weight.shape[1]);
  // Channels outside: what the places inside of them meet lies close together.
  for (size_t n = 0; n < batch; ++n)
    for (size_t o = 0; o < groups * strided_group; ++o)
      for (size_t i = 0; i < wide_group; ++i) {
        const size_t narrow = (n * groups * strided_group + o) * steps;
        const size_t broad = ((n * groups + o / strided_group) * wide_group + i) * places;
        const size_t weight = (o * wide_group + i) * taps;
        for (const Meeting& d : axis[0].meetings)
          for (const Meeting& h : axis[1].meetings)
            for (const Meeting& w : axis[2].meetings) {
              const size_t step = narrow + flat(&Axis::steps, d.step, h.step, w.step);
              const size_t place = broad + flat(&Axis::places, d.place, h.place, w.place);
              const size_t tap = weight + flat(&Axis::taps, d.tap, h.tap, w.tap);
              visit(r.transposed ? Term{place, step, tap} : Term{step, place, tap});
            }
      }
}

template <class Visit>
void terms(const ConvTbcRequest& r, Visit&& visit) {
  const Dims& out = r.grad_output.shape;
  const Dims& in = r.input.shape;
  for (int64_t t_out = 0; t_out < out[0]; ++t_out)
    for (int64_t tap = 0; tap < r.weight.shape[0]; ++tap) {
      const int64_t t = t_out + tap - r.pad;
      if (t < 0 || t >= in[0]) continue;
      for (int64_t b = 0; b < in[1]; ++b)
        for (int64_t i = 0; i < in[2]; ++i)
          for (int64_t o = 0; o < out[2]; ++o)
            visit(Term{flat_index(out, {t_out, b, o}), flat_index(in, {t, b, i}),
                       flat_index(r.weight.shape, {tap, i, o})});
    }
}

// One window along one axis: the places that it holds, and how many it counts.
struct PoolStep {
  int64_t step, begin, end;
  double padded;
};

template <class Visit>
void terms(const AvgPoolRequest& r, Visit&& visit) {
  const int rank = r.input.shape.rank();
  const int axes = r.spatial_rank > 0 ? r.spatial_rank : rank - 2;
  const int first = rank - axes;
  std::vector<PoolStep> steps[3] = {{{0, 0, 1, 1}}, {{0, 0, 1, 1}}, {{0, 0, 1, 1}}};
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, planes = 1;
  for (int i = 0; i < first; ++i) planes *= r.input.shape[i];
  for (int a = 0; a < axes; ++a) {
    const auto entry = [&](const std::vector<int64_t>& values) {
      return values.size() == 1 ? values[0] : values[static_cast<size_t>(a)];
    };
    const int at = 3 - axes + a;
    in[at] = r.input.shape[first + a];
    out[at] = r.grad_output.shape[first + a];
    const int64_t kernel = entry(r.kernel), pad = entry(r.padding);
    const int64_t stride = r.stride.empty() ? kernel : entry(r.stride);
    steps[at].clear();
    for (int64_t o = 0; o < out[at]; ++o) {
      const int64_t start = o * stride - pad, begin = std::max<int64_t>(start, 0);
      const int64_t end = std::min(start + kernel, in[at]);
      if (begin < end)
        steps[at].push_back(
            {o, begin, end, static_cast<double>(std::min(start + kernel, in[at] + pad) - start)});
    }
  }
  const auto flat = [](const int64_t(&size)[3], int64_t plane, int64_t d, int64_t h, int64_t w) {
    return static_cast<size_t>(((plane * size[0] + d) * size[1] + h) * size[2] + w);
  };
  for (int64_t plane = 0; plane < planes; ++plane)
    for (const PoolStep& d : steps[0])
      for (const PoolStep& h : steps[1])
        for (const PoolStep& w : steps[2]) {
          const auto inside = static_cast<double>((d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin));
          const double divisor = r.divisor_override != 0 ? static_cast<double>(r.divisor_override)
                                 : r.count_include_pad   ? d.padded * h.padded * w.padded
                                                         : inside;
          for (int64_t z = d.begin; z < d.end; ++z)
            for (int64_t y = h.begin; y < h.end; ++y)
              for (int64_t x = w.begin; x < w.end; ++x)
                visit(
                    Term{flat(out, plane, d.step, h.step, w.step), flat(in, plane, z, y, x), 0, 1 / divisor});
        }
}

OperandRounding rounding_of(const problem::Request& request) {
  const auto* conv = std::get_if<ConvRequest>(&request);
  const auto* tbc = std::get_if<ConvTbcRequest>(&request);
  const int64_t mode = conv ? conv->math.mode : tbc ? tbc->math.mode : 0;
  const bool fp32 = conv  ? problem::promote(*conv).value() == DType::kF32
                    : tbc ? tbc->input.dtype == DType::kF32
                          : false;
  if (!fp32) return OperandRounding::kNone;
  const auto product = conv ? conv->math.product : tbc ? tbc->math.product : std::nullopt;
  if (mode == 1 && product)
    return *product == Product::kTraining ? OperandRounding::kF16 : OperandRounding::kHf32Bits11;
  if (mode < 2) return OperandRounding::kNone;
  return mode == 2 ? OperandRounding::kF16 : OperandRounding::kHf32Bits11;
}

std::vector<double> flatten(const HostTensor& tensor, OperandRounding rounding) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(tensor.count()));
  const DType dtype = tensor.view().dtype;
  tensor.for_each_byte([&](size_t byte) {
    values.push_back(apply(rounding, load_as_f32(dtype, tensor.storage().data() + byte)));
  });
  return values;
}

template <bool kBounded>
Gradients outputs_by_scattering(const problem::Request& request, const Operands& operands,
                                OperandRounding rounding) {
  const auto x = flatten(*operands[Operand::kInput], rounding);
  const auto w =
      operands[Operand::kWeight] ? flatten(*operands[Operand::kWeight], rounding) : std::vector<double>{1.0};
  Gradients g;
  g.output.resize(static_cast<size_t>(operands[Operand::kOutput]->count()), kBounded);
  std::visit(
      [&](const auto& r) {
        terms(r, [&](const Term& t) { g.output.add<kBounded>(t.out, x[t.in] * w[t.w] * t.scale); });
      },
      request);
  if (!operands[Operand::kBias]) return g;
  const auto bias = flatten(*operands[Operand::kBias], OperandRounding::kNone);
  size_t at = 0;
  operands[Operand::kOutput]->for_each([&](const Dims& index) {
    g.output.add<kBounded>(at++, bias[static_cast<size_t>(index[channel_axis(request)])]);
  });
  return g;
}

template <bool kBounded>
Gradients scattered(const problem::Request& request, const Operands& operands) {
  const OperandRounding rounding = rounding_of(request);
  if (is_forward(request)) return outputs_by_scattering<kBounded>(request, operands, rounding);
  const HostTensor& gy = *operands[Operand::kGradOutput];
  const HostTensor& x = *operands[Operand::kInput];
  const bool has_weight = operands[Operand::kWeight].has_value();
  const auto rounded_gy = flatten(gy, rounding), rounded_x = flatten(x, rounding);
  const auto rounded_w =
      has_weight ? flatten(*operands[Operand::kWeight], rounding) : std::vector<double>{1.0};

  Gradients g;
  for (auto [gradient, count] :
       {std::pair{&g.grad_input, rounded_x.size()}, {&g.grad_weight, rounded_w.size()}})
    gradient->resize(count, kBounded);
  std::visit(
      [&](const auto& r) {
        terms(r, [&](const Term& term) {
          const double to_input = rounded_gy[term.out] * rounded_w[term.w] * term.scale;
          g.grad_input.add<kBounded>(term.in, to_input);
          if (has_weight) g.grad_weight.add<kBounded>(term.w, rounded_gy[term.out] * rounded_x[term.in]);
        });
      },
      request);

  const int channel = channel_axis(request);
  g.grad_bias.resize(static_cast<size_t>(gy.view().shape[channel]), kBounded);
  gy.for_each([&](const Dims& index) {
    g.grad_bias.add<kBounded>(static_cast<size_t>(index[channel]), gy.get(index));
  });
  return g;
}

}  // namespace

int channel_axis(const problem::Request& request) {
  return std::holds_alternative<ConvTbcRequest>(request) ? 2 : 1;
}

void for_each_term(const problem::Request& request, const std::function<void(const Term&)>& visit) {
  std::visit([&](const auto& r) { terms(r, visit); }, request);
}

void Gradient::resize(size_t count, bool bounded) {
  values.assign(count, 0);
  magnitudes.assign(bounded ? count : 0, 0);
  terms.assign(bounded ? count : 0, 0);
}

Gradients gradients_by_scattering(const problem::Request& request, const Operands& operands) {
  return scattered<true>(request, operands);
}

Gradients exact_gradients(const problem::Request& request, const Operands& operands) {
  return scattered<false>(request, operands);
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
