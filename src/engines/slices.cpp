// SPDX-License-Identifier: Apache-2.0
// Passes with fewer groups or channels, on operands whose addresses are moved.
#include "engines/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"

namespace retrograd::engines {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr int64_t kWholeVectors = 32;  // channels of a slice are a multiple, where there are enough

// What is cut: groups, or the channels of x or of y.
enum class Axis : unsigned char { kGroups, kX, kY };

Axis axis_of(const ConvPass& p) {
  if (p.groups > 1) return Axis::kGroups;
  if (p.kind == ConvPassKind::kForward) return Axis::kY;
  if (p.kind == ConvPassKind::kGradInput) return Axis::kX;
  return p.x_channels > p.y_channels ? Axis::kX : Axis::kY;
}

int64_t length_of(const ConvPass& p, Axis axis) {
  return axis == Axis::kGroups ? p.groups : axis == Axis::kX ? p.x_channels : p.y_channels;
}

ConvPass part_of(ConvPass p, Axis axis, int64_t length) {
  const int64_t x = p.x_channels_per_group(), y = p.y_channels_per_group();
  if (axis == Axis::kGroups) p.groups = length;
  if (axis != Axis::kY) p.x_channels = axis == Axis::kX ? length : length * x;
  if (axis != Axis::kX) p.y_channels = axis == Axis::kY ? length : length * y;
  return p;
}

// How far a tensor's address moves from one group or channel to the next, in bytes.
struct Move {
  problem::Operand operand;
  int64_t bytes;
};
std::array<Move, 4> moves_of(const ConvPass& p, Axis axis) {
  const int64_t x = axis == Axis::kGroups ? p.x_channels_per_group() : axis == Axis::kX ? 1 : 0;
  const int64_t y = axis == Axis::kGroups ? p.y_channels_per_group() : axis == Axis::kY ? 1 : 0;
  const auto move = [](const PassTensor& tensor, int64_t elements) {
    return Move{tensor.operand, elements * static_cast<int64_t>(size_of(tensor.dtype))};
  };
  // The weight's rows are y channels of all groups, its columns x channels of one.
  const int64_t of_w = axis == Axis::kX ? p.w.strides[1] : y * p.w.strides[0];
  const int64_t of_result = p.kind == ConvPassKind::kForward ? y : x;
  return {move(p.x, x * p.x.strides[1]), move(p.y, y * p.y.strides[1]), move(p.w, of_w),
          p.bias ? move(*p.bias, of_result * p.bias->strides[1]) : Move{p.w.operand, 0}};
}

class SlicedStep final : public Step {
 public:
  SlicedStep(const ConvPass& pass, Axis axis, int64_t length, std::unique_ptr<const Step> step,
             std::unique_ptr<const Step> last)
      : moves_(moves_of(pass, axis)),
        length_(length),
        slices_(ceil_div(length_of(pass, axis), length)),
        what_(axis == Axis::kGroups ? "groups"
              : axis == Axis::kX    ? "x channels"
                                    : "y channels"),
        step_(std::move(step)),
        last_(std::move(last)) {}

  size_t workspace_bytes() const override {
    return std::max(step_->workspace_bytes(), last_ ? last_->workspace_bytes() : 0);
  }
  std::string describe() const override {
    return fmt::format("{} slices of {} {}: {}", slices_, length_, what_, step_->describe());
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    Bindings moved = bindings;
    for (int64_t slice = 0; slice < slices_; ++slice) {
      for (const Move& move : moves_)
        if (move.bytes != 0)
          moved.set(move.operand,
                    static_cast<std::byte*>(bindings[move.operand]) + slice * length_ * move.bytes);
      (last_ && slice + 1 == slices_ ? *last_ : *step_).run(moved, workspace, context);
    }
  }

 private:
  std::array<Move, 4> moves_;
  int64_t length_, slices_;
  const char* what_;
  std::unique_ptr<const Step> step_, last_;  // null: as the others
};

}  // namespace

std::unique_ptr<const Step> make_sliced_step(const Candidate& candidate, const problem::Pass& pass,
                                             const Machine& machine, int64_t slices) {
  const auto* const whole = std::get_if<ConvPass>(&pass);
  if (whole == nullptr) return nullptr;
  const Axis axis = axis_of(*whole);
  const int64_t total = length_of(*whole, axis);
  int64_t length = ceil_div(total, slices);
  if (length > kWholeVectors) length = ceil_div(length, kWholeVectors) * kWholeVectors;
  if (length >= total) return nullptr;
  const auto step_for = [&](int64_t part) -> std::unique_ptr<const Step> {
    const problem::Pass cut = part_of(*whole, axis, part);
    return candidate.supports(cut, machine).accepted() ? candidate.make_step(cut, machine) : nullptr;
  };
  auto step = step_for(length);
  auto last = total % length == 0 ? nullptr : step_for(total % length);
  if (step == nullptr || (total % length != 0 && last == nullptr)) return nullptr;
  return std::make_unique<SlicedStep>(*whole, axis, length, std::move(step), std::move(last));
}

}  // namespace retrograd::engines
