// SPDX-License-Identifier: Apache-2.0
// A candidate for passes of one kind, made of functions.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>

#include "engines/engine.h"

namespace retrograd::engines {

template <class OnePass>
class PassCandidate final : public Candidate {
 public:
  struct Functions {
    const char* name;
    const char* others;  // why passes of another kind are declined
    Support (*supports)(const OnePass& pass, const Machine& machine);
    Effort (*effort)(const OnePass& pass, const Machine& machine);
    std::unique_ptr<const Step> (*make_step)(const OnePass& pass, const Machine& machine);
    std::optional<Rest> (*rest)(const OnePass& pass,
                                const Machine& machine) = nullptr;  // null: there is none
    bool reduces_precision = false;
  };
  explicit PassCandidate(const Functions& functions) : functions_(functions) {}

  const char* name() const override { return functions_.name; }
  bool reduces_precision() const override { return functions_.reduces_precision; }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const auto* const one = std::get_if<OnePass>(&pass);
    return one == nullptr ? Support::no(functions_.others) : functions_.supports(*one, machine);
  }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    return functions_.effort(std::get<OnePass>(pass), machine);
  }
  std::optional<Rest> rest(const problem::Pass& pass, const Machine& machine) const override {
    if (functions_.rest == nullptr) return std::nullopt;
    return functions_.rest(std::get<OnePass>(pass), machine);
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return functions_.make_step(std::get<OnePass>(pass), machine);
  }

 private:
  Functions functions_;
};
using ConvCandidate = PassCandidate<problem::ConvPass>;

// For steps that are made of the pass, or of it and the machine.
template <class OneStep, class OnePass>
std::unique_ptr<const Step> make_step(const OnePass& pass, [[maybe_unused]] const Machine& machine) {
  if constexpr (std::is_constructible_v<OneStep, const OnePass&, const Machine&>)
    return std::make_unique<OneStep>(pass, machine);
  else
    return std::make_unique<OneStep>(pass);
}

}  // namespace retrograd::engines
