// SPDX-License-Identifier: Apache-2.0
// Our views become oneDNN's descriptors: same memory, its order of axes.
#include "tensors.h"

#include <fmt/format.h>

#include <cstring>

#include "base/dtype.h"

namespace retrograd::peers {
namespace {

using dnnl::memory;
using problem::Operand;
using problem::TensorView;

memory::data_type data_type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return memory::data_type::f32;
    case DType::kF16:
      return memory::data_type::f16;
    case DType::kBF16:
      return memory::data_type::bf16;
    default:
      throw Declined{fmt::format("oneDNN has no {}", name_of(dtype))};
  }
}

memory::desc describe(const TensorView& view, const memory::dims& sizes, const memory::dims& strides) {
  for (int64_t stride : strides)
    if (stride < 1) throw Declined{"a stride below 1"};
  return {sizes, data_type_of(view.dtype), strides};
}

memory::desc describe(const TensorView& view) {
  return describe(view, {view.shape.begin(), view.shape.end()}, {view.strides.begin(), view.strides.end()});
}

// Ours is (O, I/groups, k…), for a transposed convolution (I, O/groups, k…); oneDNN's ([G,] O/G, I/G, k…)
// whichever way it runs.
memory::desc describe_weight(const TensorView& view, int64_t groups, bool transposed) {
  const int outer = transposed ? 1 : 0;
  const int64_t first = view.shape[0] / groups;
  memory::dims sizes{transposed ? view.shape[1] : first, transposed ? first : view.shape[1]};
  memory::dims strides{view.strides[outer], view.strides[1 - outer]};
  if (groups > 1) {
    sizes.insert(sizes.begin(), groups);
    strides.insert(strides.begin(), first * view.strides[0]);
  }
  sizes.insert(sizes.end(), view.shape.begin() + 2, view.shape.end());
  strides.insert(strides.end(), view.strides.begin() + 2, view.strides.end());
  return describe(view, sizes, strides);
}

memory::desc describe_permuted(const TensorView& view, std::array<int, 3> axes) {
  memory::dims sizes, strides;
  for (int axis : axes) {
    sizes.push_back(view.shape[axis]);
    strides.push_back(view.strides[axis]);
  }
  return describe(view, sizes, strides);
}

// −2 to 2 in an order without a period that a tensor's size could share.
void fill(void* data, DType dtype, size_t elements) {
  auto* at = static_cast<std::byte*>(data);
  uint32_t state = 12345;
  for (size_t i = 0; i < elements; ++i, at += size_of(dtype)) {
    state = state * 1664525u + 1013904223u;
    store_from_f32(dtype, at, static_cast<float>(static_cast<int>((state >> 16) % 5) - 2));
  }
}

}  // namespace

Tensors::Tensors(const problem::Request& request, const dnnl::engine& engine) {
  if (const auto* conv = std::get_if<problem::ConvRequest>(&request)) add_conv(*conv, engine);
  if (const auto* tbc = std::get_if<problem::ConvTbcRequest>(&request)) add_conv_tbc(*tbc, engine);
  if (const auto* pool = std::get_if<problem::AvgPoolRequest>(&request)) add_avgpool(*pool, engine);
}

void Tensors::add(Operand operand, const TensorView& view, const memory::desc& described,
                  const dnnl::engine& engine) {
  memory& created = memories_[static_cast<size_t>(operand)];
  created = memory(described, engine);
  fill(created.get_data_handle(), view.dtype, described.get_size() / size_of(view.dtype));
}

void Tensors::add_conv(const problem::ConvRequest& request, const dnnl::engine& engine) {
  const auto weight = [&](const TensorView& view) {
    return describe_weight(view, request.groups, request.transposed);
  };
  add(Operand::kGradOutput, request.grad_output, describe(request.grad_output), engine);
  add(Operand::kInput, request.input, describe(request.input), engine);
  add(Operand::kWeight, request.weight, weight(request.weight), engine);
  if (const auto& view = request.grad_input) add(Operand::kGradInput, *view, describe(*view), engine);
  if (const auto& view = request.grad_weight) add(Operand::kGradWeight, *view, weight(*view), engine);
  if (const auto& view = request.grad_bias) add(Operand::kGradBias, *view, describe(*view), engine);
}

void Tensors::add_conv_tbc(const problem::ConvTbcRequest& request, const dnnl::engine& engine) {
  const auto data = [](const TensorView& view) { return describe_permuted(view, {1, 2, 0}); };
  const auto weight = [](const TensorView& view) { return describe_permuted(view, {2, 1, 0}); };
  add(Operand::kGradOutput, request.grad_output, data(request.grad_output), engine);
  add(Operand::kInput, request.input, data(request.input), engine);
  add(Operand::kWeight, request.weight, weight(request.weight), engine);
  add(Operand::kGradInput, request.grad_input, data(request.grad_input), engine);
  add(Operand::kGradWeight, request.grad_weight, weight(request.grad_weight), engine);
  add(Operand::kGradBias, request.grad_bias, describe(request.grad_bias), engine);
}

void Tensors::add_avgpool(const problem::AvgPoolRequest& request, const dnnl::engine& engine) {
  if (request.input.shape.rank() < 3) throw Declined{"pooling without a batch axis"};
  add(Operand::kGradOutput, request.grad_output, describe(request.grad_output), engine);
  add(Operand::kGradInput, request.grad_input, describe(request.grad_input), engine);
}

engines::Bindings Tensors::bindings() const {
  engines::Bindings all;
  for (int i = 0; i < problem::kOperandCount; ++i)
    if (has(static_cast<Operand>(i)))
      all.set(static_cast<Operand>(i), memories_[static_cast<size_t>(i)].get_data_handle());
  return all;
}

}  // namespace retrograd::peers
