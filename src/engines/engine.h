// SPDX-License-Identifier: Apache-2.0
// Candidate: an engine as the planner sees it. It accepts a pass or declines it with a reason, and makes a
// step of it.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/machine.h"
#include "problem/pass.h"
#include "runtime/device.h"

namespace retrograd::engines {

// Addresses of a call's operands; null where an operand is not given.
class Bindings {
 public:
  void* operator[](problem::Operand operand) const { return addresses_[static_cast<size_t>(operand)]; }
  void set(problem::Operand operand, const void* address) {
    addresses_[static_cast<size_t>(operand)] = const_cast<void*>(address);
  }

 private:
  std::array<void*, problem::kOperandCount> addresses_{};
};

// Why not, in a few words. Nearly always nobody reads it, so a literal is not copied.
class Reason {
 public:
  Reason(const char* literal) : literal_(literal) {}
  Reason(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  std::string text() const { return text_ != nullptr ? *text_ : literal_; }

 private:
  const char* literal_ = "";
  std::shared_ptr<const std::string> text_;  // null: the literal
};

class Support {
 public:
  static Support yes() { return Support(true, ""); }
  static Support no(Reason reason) { return Support(false, std::move(reason)); }
  // A text with places for arguments.
  template <class First, class... More>
  static Support no(fmt::format_string<First, More...> text, First&& first, More&&... more) {
    return no(Reason(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...)));
  }
  bool accepted() const { return accepted_; }
  std::string reason() const { return reason_.text(); }

 private:
  Support(bool accepted, Reason reason) : accepted_(accepted), reason_(std::move(reason)) {}
  bool accepted_;
  Reason reason_;
};

// An operand in another layout or type, which steps read instead of it. The plan makes it before the first
// step that reads it; the next step may read the same one.
class Conversion {
 public:
  Conversion(std::string text, size_t bytes) : text_(std::move(text)), bytes_(bytes) {}
  virtual ~Conversion() = default;
  // "grad_output as bf16 rows of 2x64x1x56x56": conversions of one plan that say the same are the same.
  const std::string& text() const { return text_; }
  // A multiple of 64.
  size_t bytes() const { return bytes_; }
  virtual void run(const Bindings& bindings, std::byte* target, runtime::ExecutionContext& context) const = 0;

 private:
  std::string text_;
  size_t bytes_;
};
using Conversions = std::span<const std::unique_ptr<const Conversion>>;

// One pass, ready to run any number of times, also concurrently with different bindings and workspaces.
class Step {
 public:
  virtual ~Step() = default;
  // What run() finds made at the beginning of the workspace, one behind the other, and leaves as it is.
  virtual Conversions conversions() const { return {}; }
  // Conversions included.
  virtual size_t workspace_bytes() const { return 0; }
  // How the work is cut, for people: "tiles 6 x 32, 16 boxes of 2x1x14x14, 3 blocks of 21 channels". One
  // line, or nothing.
  virtual std::string describe() const { return {}; }
  // `workspace` is 64-byte aligned and holds workspace_bytes(): the conversions, and anything behind them.
  // Must not allocate, log or fail.
  virtual void run(const Bindings& bindings, std::byte* workspace,
                   runtime::ExecutionContext& context) const = 0;
};

// How many of a step's conversions are there where the step before had `made`: those at its beginning that
// are the same.
size_t count_made(Conversions wanted, Conversions made);
// A step's conversions but for the first `made`, then the step.
void run_converted(const Step& step, size_t made, const Bindings& bindings, std::byte* workspace,
                   runtime::ExecutionContext& context);

// What an implementation does for a pass, beside a machine's peaks: what its cost is made of (cost.h).
struct Effort {
  double operations = 0;  // multiplications and additions, those on padding and in idle lanes included
  double bytes = 0;       // moved from and to memory, copies included
  double launches = 1;    // kernels on a GPU, parallel loops on a CPU
  double calls = 0;       // of inner kernels on a CPU: rows, tiles, groups
};
// What the pass itself needs: products without those on padding, each tensor touched once.
Effort effort_of(const problem::Pass& pass);
// Bytes of the largest tensor that it touches.
double largest_operand(const problem::Pass& pass);

class Candidate;
// What is left of a pass after copies that an implementation makes: another pass, and who computes it.
struct Rest {
  const Candidate* candidate = nullptr;
  problem::Pass pass;
};

// An implementation of passes: one kernel family with one way of cutting. All that it knows of the processor
// is in the Machine; what it answers is a function of the two.
class Candidate {
 public:
  virtual ~Candidate() = default;
  virtual const char* name() const = 0;
  // Whether results may differ from FP32 sums of exact products: such a candidate takes only passes that
  // allow it.
  virtual bool reduces_precision() const { return false; }
  virtual Support supports(const problem::Pass& pass, const Machine& machine) const = 0;
  // Only for a pass that supports() accepted, as the two below.
  virtual Effort effort(const problem::Pass& pass, const Machine& machine) const;
  // Then effort() is that of the copies alone, and costs add up.
  virtual std::optional<Rest> rest(const problem::Pass& /*pass*/, const Machine& /*machine*/) const {
    return std::nullopt;
  }
  virtual std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const = 0;
};

}  // namespace retrograd::engines
