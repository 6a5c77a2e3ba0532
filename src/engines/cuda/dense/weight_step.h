// SPDX-License-Identifier: Apache-2.0
// grad_weight in FP16 and BF16 over rows of channels: what does not lie so is copied, then a product that the
// engine brings.
#pragma once

#include "engines/cuda/dense/row_operand.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/layout/aligned_copies.h"
#include "engines/engine.h"
#include "kernels/cuda/dense_weight/weight_results.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {

class WeightStep : public Step {
 public:
  // patches: x comes as windows (patches.h), not as places.
  explicit WeightStep(const ConvPass& pass, bool patches = false);
  WantsAligned wants_aligned() const { return {.x = x_bytes_ == 0, .y = y_bytes_ == 0, .w = false}; }
  Conversions conversions() const final { return rows_.all; }
  size_t workspace_bytes() const final { return x_bytes_ + y_bytes_ + product_bytes(); }
  void run(const Bindings& bindings, std::byte* workspace, runtime::ExecutionContext& context) const final;

 protected:
  const ConvPass& pass() const { return pass_; }
  kernels::cuda::RowType type() const { return type_; }
  std::string describe_rows() const;
  // Room of so many sums, parts counted; where the kernel stores whole sums, null of parts; and what is left
  // to do with them.
  static size_t result_bytes(kernels::cuda::WeightResults results, int64_t sums);
  static void* target_of(kernels::cuda::WeightResults results, const kernels::cuda::Conv& conv,
                         std::byte* workspace);
  void take_results(kernels::cuda::WeightResults results, const kernels::cuda::Conv& conv, int64_t filled,
                    const std::byte* workspace, kernels::cuda::Stream stream) const;

 private:
  virtual size_t product_bytes() const = 0;
  // Of aligned rows. False: nothing was launched.
  virtual bool multiply(const kernels::cuda::Conv& conv, const void* x, const void* y, std::byte* workspace,
                        kernels::cuda::Stream stream) const = 0;

  ConvPass pass_;
  kernels::cuda::RowType type_;
  bool patches_;
  size_t x_bytes_, y_bytes_;
  RowConversions rows_;
};

// The copies of a pass.
void add_row_copies(const ConvPass& pass, Times* times, bool patches = false);

}  // namespace retrograd::engines::cuda
