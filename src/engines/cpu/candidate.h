// SPDX-License-Identifier: Apache-2.0
// An implementation for the CPU as data: which passes it takes, what it does for them, and its step.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "engines/cpu/limits.h"
#include "engines/engine.h"

namespace retrograd::engines::cpu {

// Passes of one kind, and why others are declined.
template <class P>
struct PassKind {
  bool (*has)(const P& pass);
  const char* only;
};
inline constexpr PassKind<problem::ConvPass> kGathers{
    [](const problem::ConvPass& p) { return p.kind != problem::ConvPassKind::kGradWeight; },
    "computes forward and grad_input only"};
inline constexpr PassKind<problem::ConvPass> kForwards{
    [](const problem::ConvPass& p) { return p.kind == problem::ConvPassKind::kForward; },
    "computes forward only"};
inline constexpr PassKind<problem::ConvPass> kGradInputs{
    [](const problem::ConvPass& p) { return p.kind == problem::ConvPassKind::kGradInput; },
    "computes grad_input only"};
inline constexpr PassKind<problem::ConvPass> kGradWeights{
    [](const problem::ConvPass& p) { return p.kind == problem::ConvPassKind::kGradWeight; },
    "computes grad_weight only"};
inline constexpr PassKind<problem::AvgPoolPass> kPoolForward{
    [](const problem::AvgPoolPass& p) { return p.forward; }, "computes average pooling forward only"};
inline constexpr PassKind<problem::AvgPoolPass> kPoolBackward{
    [](const problem::AvgPoolPass& p) { return !p.forward; }, "computes average pooling backward only"};

template <class P>
struct Implementation {
  const char* name;
  PassKind<P> kind;
  // The reason to decline a pass of this kind and of a size that limits.h allows, or nothing.
  std::optional<Reason> (*unfit)(const P& pass, const Machine& machine) = nullptr;
  Effort (*effort)(const problem::Pass& pass, const Machine& machine) = nullptr;  // that of the pass itself
  std::unique_ptr<const Step> (*step)(const P& pass, const Machine& machine) = nullptr;
  bool reduces_precision = false;
};

template <class S, class P>
std::unique_ptr<const Step> make(const P& pass, const Machine& machine) {
  return std::make_unique<S>(pass, machine);
}

template <class P>
class CpuCandidate final : public Candidate {
 public:
  explicit CpuCandidate(const Implementation<P>& data) : data_(data) {}
  const char* name() const override { return data_.name; }
  bool reduces_precision() const override { return data_.reduces_precision; }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const P* p = std::get_if<P>(&pass);
    if (p == nullptr || !data_.kind.has(*p)) return Support::no(data_.kind.only);
    if (const auto reason = unfit_size(*p)) return Support::no(*reason);
    if (data_.unfit == nullptr) return Support::yes();
    if (const auto reason = data_.unfit(*p, machine)) return Support::no(*reason);
    return Support::yes();
  }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    return data_.effort != nullptr ? data_.effort(pass, machine) : effort_of(pass);
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return data_.step(std::get<P>(pass), machine);
  }

 private:
  Implementation<P> data_;
};
using ConvCandidate = CpuCandidate<problem::ConvPass>;
using PoolCandidate = CpuCandidate<problem::AvgPoolPass>;

}  // namespace retrograd::engines::cpu
