// SPDX-License-Identifier: Apache-2.0
// The tensors of one request as oneDNN sees them: memory with the user's own sizes and strides, holding small
// integers, so that results can be compared bit for bit.
#pragma once

#include <array>
#include <oneapi/dnnl/dnnl.hpp>

#include "engines/engine.h"
#include "problem/request.h"

namespace retrograd::peers {

// Thrown where oneDNN cannot take a problem; the text goes into the protocol's `no REASON`.
struct Declined {
  std::string reason;
};

class Tensors {
 public:
  Tensors(const problem::Request& request, const dnnl::engine& engine);

  // oneDNN's logical order: (N, C, spatial…), weights ([G,] O, I, spatial…).
  const dnnl::memory& operator[](problem::Operand operand) const {
    return memories_[static_cast<size_t>(operand)];
  }
  bool has(problem::Operand operand) const { return static_cast<bool>((*this)[operand]); }
  engines::Bindings bindings() const;

 private:
  void add(problem::Operand operand, const problem::TensorView& view, const dnnl::memory::desc& described,
           const dnnl::engine& engine);
  void add_conv(const problem::ConvRequest& request, const dnnl::engine& engine);
  void add_conv_tbc(const problem::ConvTbcRequest& request, const dnnl::engine& engine);
  void add_avgpool(const problem::AvgPoolRequest& request, const dnnl::engine& engine);

  std::array<dnnl::memory, problem::kOperandCount> memories_;
};

}  // namespace retrograd::peers
