// SPDX-License-Identifier: Apache-2.0
// Convolutions to few y channels, with x and y exchanged (mirrored_pass.h): engines fold taps into few
// channels of x (patches, columns), and read what has many channels once for all taps.
#include <fmt/format.h>

#include "engines/cost.h"
#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/mirrored_pass.h"

namespace retrograd::engines::cuda {
namespace {

constexpr int64_t kMostChannels = 48;  // of y

// Whoever computes the mirrored pass at the least cost.
const Candidate* cheapest_for(const ConvPass& mirrored, const Machine& machine) {
  const Candidate* const products[] = {&wgmma_products(), &weight_products(), &row_products(), &col2im()};
  return cheapest(products, mirrored, machine).candidate;
}

class MirroredStep final : public Step {
 public:
  MirroredStep(const ConvPass& pass, const Machine& machine)
      : weight_(pass.w.operand),
        offset_(mirror(pass).weight_offset * static_cast<int64_t>(size_of(pass.w.dtype))),
        inner_(cheapest_for(mirror(pass).pass, machine)),
        step_(inner_->make_step(mirror(pass).pass, machine)) {}
  // Of x and y, whose addresses stay.
  Conversions conversions() const override { return step_->conversions(); }
  size_t workspace_bytes() const override { return step_->workspace_bytes(); }
  std::string describe() const override {
    return fmt::format("x and y exchanged; {}: {}", inner_->name(), step_->describe());
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    step_->run(exchanged(bindings), workspace, context);
  }

 private:
  Bindings exchanged(Bindings bindings) const {
    bindings.set(weight_, static_cast<std::byte*>(bindings[weight_]) + offset_);
    return bindings;
  }

  problem::Operand weight_;
  int64_t offset_;  // bytes
  const Candidate* inner_;
  std::unique_ptr<const Step> step_;
};

Support supports(const ConvPass& conv, const Machine& machine) {
  if (conv.y_channels > kMostChannels || conv.y_channels > conv.x_channels)
    return Support::no("y has more channels than x, or than {}", kMostChannels);
  if (!can_mirror(conv)) return Support::no("needs stride 1 and one group");
  if (conv.axes[0].kernel == 1 && conv.axes[1].kernel == 1 && conv.axes[2].kernel == 1)
    return Support::no("one tap");
  // Also what makes sums long enough for the products there.
  if (!row_products().supports(conv, machine).accepted()) return Support::no("row_products declines");
  if (cheapest_for(mirror(conv).pass, machine) == nullptr)
    return Support::no("nobody takes it with x and y exchanged");
  return Support::yes();
}

Effort effort(const ConvPass& /*pass*/, const Machine& /*machine*/) {
  return {.operations = 0, .bytes = 0, .launches = 0};
}

std::optional<Rest> rest(const ConvPass& pass, const Machine& machine) {
  const ConvPass mirrored = mirror(pass).pass;
  return Rest{cheapest_for(mirrored, machine), mirrored};
}

}  // namespace

const Candidate& mirrored() {
  static const ConvCandidate instance(
      {"cuda.mirrored", "convolutions only", supports, effort, make_step<MirroredStep>, rest});
  return instance;
}

}  // namespace retrograd::engines::cuda
