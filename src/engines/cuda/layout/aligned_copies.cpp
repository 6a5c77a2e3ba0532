// SPDX-License-Identifier: Apache-2.0
// Wraps a step: copies x, y and w, where they are not aligned, before it runs.
#include "engines/cuda/layout/aligned_copies.h"

#include <array>

#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/layout/scratch.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::is_aligned;
using problem::Operand;

struct Operand1 {
  Operand operand = Operand::kInput;
  size_t bytes = 0;  // 0: stays where it is
  bool is_result = false;
};
Operand1 operand_of(const PassTensor& tensor, const Sizes5& sizes, bool wanted, Operand result) {
  if (!wanted || !(is_planes(tensor, sizes) || is_channels_last(tensor, sizes))) return {};
  return {tensor.operand, size_in_bytes(sizes, tensor.dtype), tensor.operand == result};
}

// What is copied for one run.
class Copies {
 public:
  Copies(const std::array<Operand1, 3>& operands, const Bindings& bindings, Stream stream)
      : operands_(operands), given_(bindings), bindings_(bindings), stream_(stream) {
    for (size_t i = 0; i < 3; ++i) {
      const auto& [operand, bytes, is_result] = operands[i];
      if (bytes == 0 || is_aligned(given_[operand])) continue;
      scratch_[i] = kernels::cuda::take_scratch(bytes, stream);
      if (scratch_[i] == nullptr) continue;
      if (!is_result) kernels::cuda::copy_bytes(scratch_[i], given_[operand], bytes, stream);
      bindings_.set(operand, scratch_[i]);
    }
  }
  ~Copies() {
    for (size_t i = 0; i < 3; ++i) {
      const auto& [operand, bytes, is_result] = operands_[i];
      if (scratch_[i] == nullptr) continue;
      if (is_result) kernels::cuda::copy_bytes(given_[operand], scratch_[i], bytes, stream_);
      kernels::cuda::give_back_scratch(scratch_[i], stream_);
    }
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  const Bindings& bindings() const { return bindings_; }

 private:
  const std::array<Operand1, 3>& operands_;
  Bindings given_, bindings_;
  Stream stream_;
  std::array<void*, 3> scratch_{};
};

class AlignedStep final : public Step {
 public:
  AlignedStep(const ConvPass& pass, WantsAligned wants, std::unique_ptr<const Step> step)
      : step_(std::move(step)) {
    const Operand result = pass.result().operand;
    operands_ = {operand_of(pass.x, x_sizes(pass), wants.x, result),
                 operand_of(pass.y, y_sizes(pass), wants.y, result),
                 operand_of(pass.w, w_sizes(pass), wants.w, result)};
  }
  size_t workspace_bytes() const override { return step_->workspace_bytes(); }
  std::string describe() const override { return step_->describe(); }
  Conversions conversions() const override { return step_->conversions(); }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    if (are_aligned(bindings)) return step_->run(bindings, workspace, context);
    const Copies copies(operands_, bindings, stream_of(context));
    step_->run(copies.bindings(), workspace, context);
  }

 private:
  bool are_aligned(const Bindings& bindings) const {
    for (const Operand1& one : operands_)
      if (one.bytes != 0 && !is_aligned(bindings[one.operand])) return false;
    return true;
  }
  std::unique_ptr<const Step> step_;
  std::array<Operand1, 3> operands_;
};

}  // namespace

std::unique_ptr<const Step> with_aligned_copies(const ConvPass& pass, WantsAligned wants,
                                                std::unique_ptr<const Step> step) {
  return std::make_unique<AlignedStep>(pass, wants, std::move(step));
}

}  // namespace retrograd::engines::cuda
