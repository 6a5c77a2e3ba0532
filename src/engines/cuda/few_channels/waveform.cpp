// SPDX-License-Identifier: Apache-2.0
// grad_input in one launch, grad_weight in two.
#include "kernels/cuda/few_channels/waveform.h"

#include "engines/cuda/few_channels/narrow_pass.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/shapes.h"

namespace retrograd::engines::cuda {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;

class WaveformStep final : public Step {
 public:
  explicit WaveformStep(const ConvPass& pass) : pass_(pass) {
    if (pass.kind == ConvPassKind::kGradWeight) parts_ = kernels::cuda::waveform_parts(shape_of(pass));
  }
  size_t workspace_bytes() const override { return static_cast<size_t>(parts_) * part_bytes(pass_); }
  std::string describe() const override { return describe_narrow(false, parts_); }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Conv conv = bind(shape_of(pass_), pass_, bindings);
    if (pass_.kind == ConvPassKind::kGradInput)
      return kernels::cuda::waveform_grad_input(conv, stream_of(context));
    kernels::cuda::waveform_grad_weight(conv, reinterpret_cast<float*>(workspace), stream_of(context));
  }

 private:
  ConvPass pass_;
  int64_t parts_ = 0;
};

class WaveformCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.waveform"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (const Support narrow = is_narrow_pass(conv); !narrow.accepted()) return narrow;
    if (is_last(*conv)) return Support::no("needs row-major x and y");
    return kernels::cuda::has_waveform(shape_of(*conv))
               ? Support::yes()
               : Support::no("needs one x channel, one axis, ten taps and stride 5");
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<WaveformStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& waveform() {
  static const WaveformCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
