// SPDX-License-Identifier: Apache-2.0
// Which primitives with which formats: convolution, and deconvolution for transposed.
#include <fmt/format.h>

#include "api.h"
#include "ways.h"

namespace retrograd::peers {
namespace {

using dnnl::memory;
using problem::Operand;

struct Attributes {
  memory::dims stride, dilation, padding_front, padding_back;
  bool transposed = false;
};

Attributes attributes_of(const problem::ConvRequest& request) {
  Attributes a{request.stride, request.dilation, request.padding, request.padding, request.transposed};
  for (auto& dilation : a.dilation) --dilation;  // oneDNN counts the gaps
  const size_t axes = a.stride.size();
  if (request.padding.size() == 2 * axes) {
    a.padding_front.clear();
    a.padding_back.clear();
    for (size_t axis = 0; axis < axes; ++axis) {
      a.padding_front.push_back(request.padding[2 * axis]);
      a.padding_back.push_back(request.padding[2 * axis + 1]);
    }
  }
  return a;
}

// Primitives of one kind, plain or transposed: the interfaces are alike.
template <class Forward, class BackwardData, class BackwardWeights, dnnl::algorithm kAlgorithm>
struct Primitives {
  const Tensors& tensors;
  const Attributes& a;
  const dnnl::engine& engine;

  memory::desc format(Operand operand, bool any) const {
    const memory::desc plain = tensors[operand].get_desc();
    return any ? memory::desc(sizes_of(plain), type_of(plain), memory::format_tag::any) : plain;
  }
  typename Forward::primitive_desc hint(Operand input, Operand weight, bool any) const {
    return forward_desc<Forward>(engine, dnnl::prop_kind::forward_training, kAlgorithm, format(input, any),
                                 format(weight, any), format(Operand::kGradOutput, any), a.stride, a.dilation,
                                 a.padding_front, a.padding_back);
  }

  Made grad_input(bool any) const {
    const auto made = backward_desc<BackwardData>(
        engine, hint(Operand::kGradInput, Operand::kWeight, any), kAlgorithm,
        format(Operand::kGradInput, any), format(Operand::kWeight, any), format(Operand::kGradOutput, any),
        a.stride, a.dilation, a.padding_front, a.padding_back);
    return {made, [made, primitive = BackwardData(made)](Sequence& sequence) {
              const memory grad_output = sequence.read(Operand::kGradOutput, made.diff_dst_desc());
              const memory weight = sequence.read(Operand::kWeight, made.weights_desc());
              const memory grad_input = sequence.written(Operand::kGradInput, made.diff_src_desc());
              sequence.add(primitive, {{DNNL_ARG_DIFF_DST, grad_output},
                                       {DNNL_ARG_WEIGHTS, weight},
                                       {DNNL_ARG_DIFF_SRC, grad_input}});
            }};
  }

  Made grad_weight(bool any) const {
    const auto forward = hint(Operand::kInput, Operand::kGradWeight, any);
    const memory::desc input = format(Operand::kInput, any), weight = format(Operand::kGradWeight, any),
                       grad_output = format(Operand::kGradOutput, any);
    const bool bias = tensors.has(Operand::kGradBias);
    const auto made =
        bias ? backward_desc<BackwardWeights>(engine, forward, kAlgorithm, input, weight,
                                              tensors[Operand::kGradBias].get_desc(), grad_output, a.stride,
                                              a.dilation, a.padding_front, a.padding_back)
             : backward_desc<BackwardWeights>(engine, forward, kAlgorithm, input, weight, grad_output,
                                              a.stride, a.dilation, a.padding_front, a.padding_back);
    return {made, [made, bias, primitive = BackwardWeights(made)](Sequence& sequence) {
              std::vector<std::pair<int, memory>> arguments{
                  {DNNL_ARG_SRC, sequence.read(Operand::kInput, made.src_desc())},
                  {DNNL_ARG_DIFF_DST, sequence.read(Operand::kGradOutput, made.diff_dst_desc())},
                  {DNNL_ARG_DIFF_WEIGHTS, sequence.written(Operand::kGradWeight, made.diff_weights_desc())}};
              if (bias)
                arguments.push_back(
                    {DNNL_ARG_DIFF_BIAS, sequence.written(Operand::kGradBias, made.diff_bias_desc())});
              sequence.add(primitive, arguments);
            }};
  }
};

using Plain = Primitives<dnnl::convolution_forward, dnnl::convolution_backward_data,
                         dnnl::convolution_backward_weights, dnnl::algorithm::convolution_direct>;
using Transposed = Primitives<dnnl::deconvolution_forward, dnnl::deconvolution_backward_data,
                              dnnl::deconvolution_backward_weights, dnnl::algorithm::deconvolution_direct>;

// grad_bias without grad_weight: oneDNN's sum over all other axes.
Made grad_bias_alone(const Tensors& tensors, const dnnl::engine& engine) {
  const memory::desc source = tensors[Operand::kGradOutput].get_desc();
  memory::dims sizes(sizes_of(source).size(), 1);
  sizes[1] = sizes_of(source)[1];
  const memory::desc sum = tensors[Operand::kGradBias].get_desc().reshape(sizes);
  const auto made =
      forward_desc<dnnl::reduction>(engine, dnnl::algorithm::reduction_sum, source, sum, 0.f, 0.f);
  return {
      made, [sum, primitive = dnnl::reduction(made), &tensors, engine](Sequence& sequence) {
        const memory grad_bias(sum, engine, tensors[Operand::kGradBias].get_data_handle());
        sequence.add(primitive, {{DNNL_ARG_SRC, tensors[Operand::kGradOutput]}, {DNNL_ARG_DST, grad_bias}});
      }};
}

// Products of one gradient, those on padding included.
double products_of(const Tensors& tensors) {
  const auto elements = [&](Operand operand) {
    double product = 1;
    for (int64_t size : sizes_of(tensors[operand].get_desc())) product *= static_cast<double>(size);
    return product;
  };
  const auto channels = static_cast<double>(sizes_of(tensors[Operand::kGradOutput].get_desc())[1]);
  return elements(Operand::kGradOutput) * elements(Operand::kWeight) / channels;
}

// Its reference loops take nanoseconds a product. On little work they may be the fastest, because nothing is
// reordered for them. On more they are timed where there is nothing else; on much, seconds a call, not at
// all.
constexpr double kMostOfReference = 1e5, kMostOfReferenceAlone = 1e7;

template <class Kind>
std::vector<Variant> conv_variants(const Kind& kind, const Tensors& tensors, const dnnl::engine& engine) {
  std::vector<std::vector<NamedWay>> gradients;
  const auto both = [&](const char* what, Made (Kind::*make)(bool) const) {
    Attempts attempts;
    attempts.attempt("plain", [&] { return (kind.*make)(false); });
    attempts.attempt("reorders", [&] { return (kind.*make)(true); });
    const double products = products_of(tensors);
    gradients.push_back(products > kMostOfReference ? attempts.without_reference(what) : attempts.made(what));
    if (products > kMostOfReferenceAlone && gradients.back().front().reference)
      throw Declined{fmt::format("{}: oneDNN has reference loops only", what)};
  };
  if (tensors.has(Operand::kGradInput)) both("grad_input", &Kind::grad_input);
  if (tensors.has(Operand::kGradWeight)) both("grad_weight", &Kind::grad_weight);
  if (tensors.has(Operand::kGradBias) && !tensors.has(Operand::kGradWeight)) {
    Attempts attempts;
    attempts.attempt("plain", [&] { return grad_bias_alone(tensors, engine); });
    gradients.push_back(attempts.made("grad_bias"));
  }
  if (gradients.empty()) throw Declined{"no gradient is asked for"};

  Variants variants(tensors, engine);
  const std::vector<NamedWay> nothing{{"", [](Sequence&) {}}};
  for (const NamedWay& first : gradients[0])
    for (const NamedWay& second : gradients.size() > 1 ? gradients[1] : nothing) {
      const bool alike = second.name.empty() || first.name == second.name;
      variants.add(alike ? first.name : fmt::format("{}+{}", first.name, second.name),
                   [&](Sequence& sequence) {
                     first.append(sequence);
                     second.append(sequence);
                   });
    }
  return variants.made();
}

std::vector<Variant> variants_of(const Attributes& a, const Tensors& tensors, const dnnl::engine& engine) {
  return a.transposed ? conv_variants(Transposed{tensors, a, engine}, tensors, engine)
                      : conv_variants(Plain{tensors, a, engine}, tensors, engine);
}

}  // namespace

std::vector<Variant> conv_variants(const problem::ConvRequest& request, const Tensors& tensors,
                                   const dnnl::engine& engine) {
  return variants_of(attributes_of(request), tensors, engine);
}

std::vector<Variant> conv_tbc_variants(const problem::ConvTbcRequest& request, const Tensors& tensors,
                                       const dnnl::engine& engine) {
  return variants_of({{1}, {0}, {request.pad}, {request.pad}}, tensors, engine);
}

}  // namespace retrograd::peers
