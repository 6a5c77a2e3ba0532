// SPDX-License-Identifier: Apache-2.0
// Planning and running with candidates of the test's own: order, refusals, workspace, bindings, devices.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/log.h"
#include "problem/problem_text.h"
#include "runtime/host/host_device.h"
#include "runtime/memory.h"

namespace retrograd::plan {
namespace {

using engines::Candidate;
using engines::Step;
using engines::Support;
using problem::Operand;

runtime::Device& cpu() { return *runtime::find_device(runtime::DeviceKind::kCpu, 0); }

problem::Problem problem_of(const char* text) {
  auto request = problem::parse_request(text);
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  auto made = problem::judge(request.value());
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return std::move(made).value();
}

// Accepts one kind of pass, wants a workspace, and notes the runs and the workspace it was given.
class ProbeCandidate final : public Candidate {
 public:
  ProbeCandidate(const char* name, std::string pass, size_t workspace)
      : name_(name), pass_(std::move(pass)), workspace_(workspace) {}
  const char* name() const override { return name_; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    return pass_ == "any" || pass_ == name_of(pass) ? Support::yes()
                                                    : Support::no("computes " + pass_ + " only");
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<ProbeStep>(*this, std::string(name_of(pass)));
  }

  mutable std::vector<std::string> ran;
  mutable std::vector<uintptr_t> workspaces;

 private:
  class ProbeStep final : public Step {
   public:
    ProbeStep(const ProbeCandidate& owner, std::string pass) : owner_(owner), pass_(std::move(pass)) {}
    size_t workspace_bytes() const override { return owner_.workspace_; }
    void run(const Bindings&, std::byte* workspace, runtime::ExecutionContext& context) const override {
      EXPECT_NE(context.pool, nullptr);
      if (owner_.workspace_ > 0) std::memset(workspace, 0, owner_.workspace_);
      owner_.ran.push_back(pass_);
      owner_.workspaces.push_back(reinterpret_cast<uintptr_t>(workspace));
    }

   private:
    const ProbeCandidate& owner_;
    std::string pass_;
  };
  const char* name_;
  std::string pass_;
  size_t workspace_;
};

// Its steps read a conversion, the same one whatever the pass, or none, and another one behind it.
class ConvertingCandidate final : public Candidate {
 public:
  explicit ConvertingCandidate(std::string pass_without) : pass_without_(std::move(pass_without)) {}
  const char* name() const override { return "converting"; }
  Support supports(const problem::Pass&, const Machine& /*machine*/) const override { return Support::yes(); }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<ConvertingStep>(*this, std::string(name_of(pass)));
  }
  mutable std::string ran;

 private:
  class NotedConversion final : public engines::Conversion {
   public:
    NotedConversion(const ConvertingCandidate& owner, std::string text)
        : Conversion(std::move(text), 64), owner_(owner) {}
    void run(const Bindings&, std::byte* target, runtime::ExecutionContext&) const override {
      owner_.ran += text() + " ";
      *target = static_cast<std::byte>(text().back());
    }

   private:
    const ConvertingCandidate& owner_;
  };
  class ConvertingStep final : public Step {
   public:
    ConvertingStep(const ConvertingCandidate& owner, std::string pass) : owner_(owner), pass_(pass) {
      if (pass == owner.pass_without_) return;
      conversions_.push_back(std::make_unique<NotedConversion>(owner, "rows"));
      conversions_.push_back(std::make_unique<NotedConversion>(owner, "of_" + pass));
    }
    engines::Conversions conversions() const override { return conversions_; }
    size_t workspace_bytes() const override { return 128; }
    void run(const Bindings&, std::byte* workspace, runtime::ExecutionContext&) const override {
      owner_.ran += pass_ + ". ";
      for (size_t i = 0; i < conversions_.size(); ++i)
        EXPECT_EQ(workspace[64 * i], static_cast<std::byte>(conversions_[i]->text().back()));
      if (conversions_.empty()) std::fill_n(workspace, 128, std::byte{0});
    }

   private:
    const ConvertingCandidate& owner_;
    std::string pass_;
    std::vector<std::unique_ptr<const engines::Conversion>> conversions_;
  };
  std::string pass_without_;
};

constexpr const char* kConv = "conv input=1x1x4 weight=1x1x1";

struct Buffers {
  float values[6][4] = {};
  Bindings all() {
    Bindings bindings;
    for (int i = 0; i < problem::kOperandCount; ++i) bindings.set(static_cast<Operand>(i), values[i]);
    return bindings;
  }
};

std::vector<std::string>* log_lines = nullptr;
void collect(log::Topic, std::string_view line) { log_lines->emplace_back(line); }

TEST(PlanTest, TheFirstCandidateThatAcceptsTakesThePass) {
  const ProbeCandidate weight("weight", "grad_weight", 0), rest("rest", "any", 0), never("never", "any", 0);
  const Candidate* const order[] = {&weight, &rest, &never};
  const auto plan = make_plan(problem_of(kConv), cpu(), "test", order);
  ASSERT_TRUE(plan.is_ok());
  EXPECT_EQ(plan.value()->describe(), "grad_input:rest grad_weight:weight grad_bias:rest");
  EXPECT_EQ(plan.value()->workspace_bytes(), 0u);
}

TEST(PlanTest, NoCandidateIsAnErrorThatNamesThePass) {
  const ProbeCandidate weight("weight", "grad_weight", 0);
  const Candidate* const order[] = {&weight};
  const auto plan = make_plan(problem_of(kConv), cpu(), "test", order);
  ASSERT_FALSE(plan.is_ok());
  EXPECT_EQ(plan.status().code(), Code::kInternal);
  EXPECT_NE(plan.status().message().find("grad_input"), std::string::npos);
}

TEST(PlanTest, StepsRunInOrderAndShareOneAlignedWorkspace) {
  const ProbeCandidate small("small", "grad_weight", 100), large("large", "any", 1000);
  const Candidate* const order[] = {&small, &large};
  const auto plan = make_plan(problem_of(kConv), cpu(), "test", order).value();
  EXPECT_EQ(plan->workspace_bytes(), 1063u);
  Buffers buffers;
  std::vector<std::byte> workspace(1063 + 64);
  for (size_t shift = 0; shift < 64; shift += 7) {
    large.workspaces.clear();
    ASSERT_TRUE(
        Plan::execute(plan, buffers.all(), workspace.data() + shift, 1063, *cpu().null_stream()).is_ok());
    for (uintptr_t address : large.workspaces) EXPECT_EQ(address % 64, 0u);
  }
  EXPECT_EQ(std::vector<std::string>(large.ran.begin(), large.ran.begin() + 2),
            (std::vector<std::string>{"grad_input", "grad_bias"}));
}

TEST(PlanTest, AConversionIsMadeOnceForStepsThatFollowEachOther) {
  Buffers buffers;
  const auto run = [&](const ConvertingCandidate& candidate, const Bindings& bindings) {
    const Candidate* const order[] = {&candidate};
    const auto plan = make_plan(problem_of(kConv), cpu(), "test", order).value();
    std::vector<std::byte> workspace(plan->workspace_bytes());
    EXPECT_TRUE(
        Plan::execute(plan, bindings, workspace.data(), workspace.size(), *cpu().null_stream()).is_ok());
    return candidate.ran;
  };
  EXPECT_EQ(run(ConvertingCandidate("none"), buffers.all()),
            "rows of_grad_input grad_input. of_grad_weight grad_weight. of_grad_bias grad_bias. ");
  EXPECT_EQ(run(ConvertingCandidate("grad_weight"), buffers.all()),
            "rows of_grad_input grad_input. grad_weight. rows of_grad_bias grad_bias. ");
  Bindings without_weight = buffers.all();
  without_weight.set(Operand::kGradWeight, nullptr);
  EXPECT_EQ(run(ConvertingCandidate("none"), without_weight),
            "rows of_grad_input grad_input. of_grad_bias grad_bias. ");
  Bindings without_input = buffers.all();
  without_input.set(Operand::kGradInput, nullptr);
  EXPECT_EQ(run(ConvertingCandidate("none"), without_input),
            "rows of_grad_weight grad_weight. of_grad_bias grad_bias. ");
}

TEST(PlanTest, ACandidateThatNeedsMoreThanTheLimitIsPassedOver) {
  const ProbeCandidate large("large", "any", 1000), small("small", "grad_weight", 100),
      none("none", "any", 0);
  const Candidate* const order[] = {&large, &small, &none};
  const struct {
    size_t limit, workspace;
    const char* steps;
  } cases[] = {
      {SIZE_MAX, 1063, "grad_input:large grad_weight:large grad_bias:large"},
      {1063, 1063, "grad_input:large grad_weight:large grad_bias:large"},
      {1062, 163, "grad_input:none grad_weight:small grad_bias:none"},
      {162, 0, "grad_input:none grad_weight:none grad_bias:none"},
      {0, 0, "grad_input:none grad_weight:none grad_bias:none"},
  };
  for (const auto& [limit, workspace, steps] : cases) {
    const auto plan = make_plan(problem_of(kConv), cpu(), "test", order, limit).value();
    EXPECT_EQ(plan->workspace_bytes(), workspace) << limit;
    EXPECT_EQ(plan->describe(), steps) << limit;
  }
}

TEST(PlanTest, WorkspaceIsJudged) {
  const ProbeCandidate any("any", "any", 10);
  const Candidate* const order[] = {&any};
  const auto plan = make_plan(problem_of(kConv), cpu(), "test", order).value();
  Buffers buffers;
  std::vector<std::byte> workspace(plan->workspace_bytes());
  const auto run = [&](void* address, size_t size) {
    return Plan::execute(plan, buffers.all(), address, size, *cpu().null_stream());
  };
  EXPECT_EQ(run(nullptr, 1000).code(), Code::kNullWorkspace);
  const Status one_short = run(workspace.data(), workspace.size() - 1);
  EXPECT_EQ(one_short.code(), Code::kShortWorkspace);
  EXPECT_NE(one_short.message().find("the workspace has 72 bytes, expected at least 73"), std::string::npos)
      << one_short.message();
  EXPECT_TRUE(run(workspace.data(), workspace.size()).is_ok());
  EXPECT_EQ(any.ran.size(), 3u) << "a refused run must not have started";
}

TEST(PlanTest, AWorkspaceBlockShorterThanItsSizeSaysIsRefused) {
  const ProbeCandidate any("any", "any", 1000);
  const Candidate* const order[] = {&any};
  const auto plan = make_plan(problem_of(kConv), cpu(), "test", order).value();
  auto& table = runtime::AllocationTable::instance();
  void* block =
      table.allocate(cpu(), 64, runtime::MemorySpace::kDevice, runtime::MemoryOwner::kInfini).value();
  Buffers buffers;
  EXPECT_FALSE(
      Plan::execute(plan, buffers.all(), block, plan->workspace_bytes(), *cpu().null_stream()).is_ok());
  EXPECT_TRUE(table.release(block, runtime::MemorySpace::kDevice, runtime::MemoryOwner::kInfini).is_ok());
}

TEST(PlanTest, AStreamOfAnotherDeviceIsRefused) {
  const auto plan = make_plan(problem_of(kConv), cpu(), "test").value();
  runtime::HostDevice other(1);
  Buffers buffers;
  const Status status = Plan::execute(plan, buffers.all(), nullptr, 0, *other.null_stream());
  EXPECT_EQ(status.code(), Code::kWrongDevice);
  EXPECT_NE(status.message().find("cpu:1"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("cpu:0"), std::string::npos) << status.message();
}

TEST(PlanTest, NullResultsAreSkippedAndNullOperandsRefused) {
  const ProbeCandidate any("any", "any", 0);
  const Candidate* const order[] = {&any};
  const auto plan = make_plan(problem_of(kConv), cpu(), "test", order).value();
  Buffers buffers;
  const auto run = [&](std::initializer_list<Operand> null) {
    Bindings bindings = buffers.all();
    for (Operand operand : null) bindings.set(operand, nullptr);
    any.ran.clear();
    return Plan::execute(plan, bindings, nullptr, 0, *cpu().null_stream());
  };
  using Names = std::vector<std::string>;
  EXPECT_TRUE(run({Operand::kGradInput}).is_ok());
  EXPECT_EQ(any.ran, (Names{"grad_weight", "grad_bias"}));
  EXPECT_TRUE(run({Operand::kGradInput, Operand::kWeight}).is_ok())
      << "no weight is needed for the other two";
  EXPECT_TRUE(run({Operand::kGradWeight, Operand::kInput}).is_ok());
  EXPECT_TRUE(run({Operand::kGradInput, Operand::kGradWeight, Operand::kInput, Operand::kWeight}).is_ok());
  EXPECT_EQ(any.ran, Names{"grad_bias"});
  for (Operand needed : {Operand::kGradOutput, Operand::kInput, Operand::kWeight}) {
    const Status status = run({needed});
    EXPECT_EQ(status.code(), Code::kNullArgument);
    EXPECT_NE(status.message().find(name_of(needed)), std::string::npos) << status.message();
    EXPECT_TRUE(any.ran.empty());
  }
  Bindings bindings = buffers.all();
  EXPECT_TRUE(plan->require_results(bindings).is_ok());
  bindings.set(Operand::kGradWeight, nullptr);
  EXPECT_EQ(plan->require_results(bindings).code(), Code::kNullArgument);
}

TEST(PlanTest, ABlockOfOursThatIsTooSmallIsRefused) {
  const ProbeCandidate any("any", "any", 0);
  const Candidate* const order[] = {&any};
  const auto plan = make_plan(problem_of(kConv), cpu(), "test", order).value();
  auto& table = runtime::AllocationTable::instance();
  void* block =
      table.allocate(cpu(), 16, runtime::MemorySpace::kDevice, runtime::MemoryOwner::kInfini).value();
  Buffers buffers;
  Bindings bindings = buffers.all();
  bindings.set(Operand::kGradInput, block);
  EXPECT_TRUE(Plan::execute(plan, bindings, nullptr, 0, *cpu().null_stream()).is_ok());
  bindings.set(Operand::kGradInput, static_cast<std::byte*>(block) + 4);
  const Status status = Plan::execute(plan, bindings, nullptr, 0, *cpu().null_stream());
  EXPECT_EQ(status.code(), Code::kBadStrides);
  EXPECT_NE(status.message().find("grad_input touches bytes 4 to 19"), std::string::npos) << status.message();
  EXPECT_TRUE(table.release(block, runtime::MemorySpace::kDevice, runtime::MemoryOwner::kInfini).is_ok());
}

TEST(PlanTest, QuietUnlessAsked) {
  std::vector<std::string> lines;
  log_lines = &lines;
  log::set_sink(collect);
  const auto plan = make_plan(problem_of(kConv), cpu(), "test").value();
  Buffers buffers;
  std::vector<std::byte> workspace(plan->workspace_bytes());
  EXPECT_TRUE(
      Plan::execute(plan, buffers.all(), workspace.data(), workspace.size(), *cpu().null_stream()).is_ok());
  log::set_sink(nullptr);
  EXPECT_EQ(lines, std::vector<std::string>{});
}

TEST(PlanTest, AnEmptyProblemDoesNothing) {
  const auto plan = make_plan(problem_of("conv input=1x1x4 weight=1x1x1 mask=none"), cpu(), "test").value();
  EXPECT_EQ(plan->describe(), "nothing");
  EXPECT_EQ(plan->workspace_bytes(), 0u);
  EXPECT_TRUE(Plan::execute(plan, Bindings(), nullptr, 0, *cpu().null_stream()).is_ok());
}

}  // namespace
}  // namespace retrograd::plan
