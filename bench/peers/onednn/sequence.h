// SPDX-License-Identifier: Apache-2.0
// Sequence: what one timed call runs. Reorders into the primitives' formats, the primitives, reorders back,
// all created beforehand; running it allocates nothing of ours.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "problem/pass.h"
#include "tensors.h"

namespace retrograd::peers {

class Sequence {
 public:
  Sequence(const Tensors& tensors, dnnl::engine engine) : tensors_(&tensors), engine_(std::move(engine)) {}

  // The operand in the format a primitive wants to read; reordered once, however many primitives read it.
  dnnl::memory read(problem::Operand operand, const dnnl::memory::desc& wanted);
  // Where a primitive writes the operand; write_back() makes the reorder to the user's tensor.
  dnnl::memory written(problem::Operand operand, const dnnl::memory::desc& wanted);
  void add(const dnnl::primitive& primitive, const std::vector<std::pair<int, dnnl::memory>>& arguments);
  void write_back();

  void run(const dnnl::stream& stream) const;
  size_t reorders() const { return reorders_; }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  struct Copy {
    problem::Operand operand;
    dnnl::memory memory;
  };
  void add_reorder(const dnnl::memory& from, const dnnl::memory& to);

  const Tensors* tensors_;
  dnnl::engine engine_;
  std::vector<Step> steps_;
  std::vector<Copy> read_, written_;
  std::vector<dnnl::memory> kept_;  // the steps hold handles only
  size_t reorders_ = 0;
};

}  // namespace retrograd::peers
