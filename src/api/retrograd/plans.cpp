// SPDX-License-Identifier: Apache-2.0
// Plans as handles: made, asked, run, destroyed.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "api/retrograd/devices.h"
#include "api/retrograd/guard.h"
#include "api/retrograd/request.h"
#include "api/retrograd/texts.h"
#include "base/handle_table.h"
#include "base/per_process.h"
#include "plan/explain.h"
#include "plan/plan.h"
#include "problem/operand_views.h"
#include "problem/problem_text.h"

using namespace retrograd;
using namespace retrograd::api::own;
using problem::Operand;

namespace {

// A plan and the tensors it was made for.
struct Made {
  std::shared_ptr<const plan::Plan> plan;
  problem::OperandViews tensors;
  bool forward = false;
};
using MadePointer = std::shared_ptr<const Made>;

// Never destroyed, so that a caller's static destructors find it.
HandleTable<const Made>& plans() {
  static constinit PerProcess<HandleTable<const Made>> live;
  return live.get();
}

Status not_alive(retrogradPlan_t plan) {
  return Status(Code::kBadHandle, "plan is {}, which is not alive: destroyed, or never created{}",
                static_cast<const void*>(plan), fork_note());
}

Result<MadePointer> find(retrogradPlan_t plan) {
  if (plan == nullptr) return Status(Code::kNullArgument, "plan is null");
  if (auto found = plans().find(plan)) return found;
  return not_alive(plan);
}

const char* name_of(const problem::Request& request) {
  static constexpr const char* kNames[][2] = {{"retrogradConvBackward", "retrogradConv"},
                                              {"retrogradConvTbcBackward", "retrogradConvTbc"},
                                              {"retrogradAvgPoolBackward", "retrogradAvgPool"}};
  return kNames[request.index()][problem::is_forward(request) ? 1 : 0];
}

Result<std::shared_ptr<Made>> make_plan(const problem::Problem& problem, runtime::Device& device) {
  auto made = std::make_shared<Made>();
  RG_TRY(made->plan, plan::make_plan(problem, device, name_of(problem.request)));
  made->tensors = problem::views_of(problem.request);
  made->forward = problem::is_forward(problem.request);
  return made;
}

Result<MadePointer> make_plan(const retrogradProblem_t& problem) {
  RG_TRY(auto request, to_request(problem));
  RG_TRY(runtime::Device* const device, device_of(problem));
  RG_TRY(auto judged, problem::judge(std::move(request)));
  std::vector<Operand> left_out;
  if (problem.grad_input == nullptr) left_out.push_back(Operand::kGradInput);
  if (problem.grad_weight == nullptr) left_out.push_back(Operand::kGradWeight);
  if (problem.grad_bias == nullptr) left_out.push_back(Operand::kGradBias);
  // A request of conv_tbc has all three.
  std::erase_if(judged.passes, [&](const problem::Pass& pass) {
    return std::find(left_out.begin(), left_out.end(), result_of(pass).operand) != left_out.end();
  });
  RG_TRY(const auto made, make_plan(judged, *device));
  for (const Operand operand : left_out) made->tensors[static_cast<size_t>(operand)].reset();
  return MadePointer(made);
}

Result<problem::Request> parse(const char* problem_text) {
  if (problem_text == nullptr) return Status(Code::kNullArgument, "problem_text is null");
  RG_TRY(auto request, problem::parse_request(problem_text));
  apply_settings(request);
  return request;
}

void publish(MadePointer made, retrogradPlan_t* plan) {
  *plan = static_cast<retrogradPlan_t>(plans().insert(std::move(made)));
}

Result<std::shared_ptr<runtime::Stream>> find_stream(void* stream, runtime::Device& device) {
  if (stream == nullptr) return device.null_stream();
  // Handles that we have minted are streams of other interfaces, and no cudaStream_t.
  if (!is_minted_handle(stream))
    if (auto found = device.adopt_stream(stream)) return found;
  return Status(device.kind() == runtime::DeviceKind::kCpu ? Code::kWrongDevice : Code::kBadHandle,
                fmt::format("stream is {}, expected {}", stream,
                            device.kind() == runtime::DeviceKind::kCpu ? "null: the plan is one for the CPU"
                                                                       : "null or a cudaStream_t"));
}

// Programs of the first header have a struct that ends in front of `bias`, and no forward plans.
plan::Bindings bind(const retrogradAddresses_t& addresses, bool forward) {
  plan::Bindings bindings;
  if (forward) {
    bindings.set(Operand::kBias, addresses.bias);
    bindings.set(Operand::kOutput, addresses.output);
  }
  bindings.set(Operand::kGradOutput, addresses.grad_output);
  bindings.set(Operand::kInput, addresses.input);
  bindings.set(Operand::kWeight, addresses.weight);
  bindings.set(Operand::kGradInput, addresses.grad_input);
  bindings.set(Operand::kGradWeight, addresses.grad_weight);
  bindings.set(Operand::kGradBias, addresses.grad_bias);
  return bindings;
}

retrogradAddresses_t addresses_of(const retrogradProblem_t& p) {
  const auto data = [](const retrogradTensor_t* tensor) {
    return tensor == nullptr ? nullptr : tensor->data;
  };
  return {data(p.grad_output), data(p.input),     data(p.weight), data(p.grad_input),
          data(p.grad_weight), data(p.grad_bias), data(p.bias),   data(p.output)};
}

// Null with 0 bytes. Waits for `stream` before it frees: a GPU may still be using the memory.
class Workspace {
 public:
  static Result<std::unique_ptr<Workspace>> of(size_t bytes, runtime::Device& device,
                                               runtime::Stream& stream) {
    auto workspace = std::make_unique<Workspace>(device, stream);
    if (bytes > 0) {
      RG_TRY(workspace->address_, device.allocate(bytes));
    }
    return workspace;
  }
  Workspace(runtime::Device& device, runtime::Stream& stream) : device_(device), stream_(stream) {}
  ~Workspace() {
    if (address_ == nullptr) return;
    static_cast<void>(stream_.synchronize(runtime::Stream::kForever));
    device_.deallocate(address_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* address() const { return address_; }

 private:
  runtime::Device& device_;
  runtime::Stream& stream_;
  void* address_ = nullptr;
};

}  // namespace

retrogradStatus_t retrogradInitProblem(retrogradProblem_t* problem, size_t struct_size,
                                       retrogradOperation_t operation) {
  return guard(__func__, [&]() -> Status {
    if (problem == nullptr) return {Code::kNullArgument, "problem is null"};
    if (!is_problem_size(struct_size))
      return Status(Code::kInvalidArgument,
                    "struct_size is {}, expected sizeof(retrogradProblem_t), which is {} in version {}",
                    struct_size, sizeof(retrogradProblem_t), retrogradVersion());
    retrogradProblem_t made{};
    made.struct_size = struct_size;
    made.operation = operation;
    made.groups = 1;
    made.count_include_pad = 1;
    // What a later header has behind it is 0.
    std::memset(static_cast<void*>(problem), 0, struct_size);
    std::memcpy(static_cast<void*>(problem), &made, std::min(struct_size, sizeof made));
    return Status::ok();
  });
}

retrogradStatus_t retrogradProblemText(const retrogradProblem_t* problem, char* text, size_t capacity,
                                       size_t* length) {
  return guard(__func__, [&]() -> Status {
    RG_CHECK(check_buffer(text, capacity));
    RG_TRY(const auto given, read_problem(problem));
    RG_TRY(const auto request, to_request(given));
    return hand_out(problem::to_text(request), text, capacity, length);
  });
}

retrogradStatus_t retrogradExplain(const char* problem_text, retrogradDevice_t device, char* text,
                                   size_t capacity, size_t* length) {
  return guard(__func__, [&]() -> Status {
    RG_CHECK(check_buffer(text, capacity));
    RG_TRY(auto request, parse(problem_text));
    RG_TRY(runtime::Device* const where, find_device(device, "device"));
    RG_TRY(const auto judged, problem::make_problem(std::move(request)));
    RG_TRY(const auto told, plan::explain(judged, *where));
    return hand_out(told.text, text, capacity, length);
  });
}

retrogradStatus_t retrogradCreatePlan(retrogradPlan_t* plan, const retrogradProblem_t* problem) {
  return guard(__func__, [&]() -> Status {
    if (plan == nullptr) return {Code::kNullArgument, "plan is null"};
    RG_TRY(const auto given, read_problem(problem));
    RG_TRY(auto made, make_plan(given));
    publish(std::move(made), plan);
    return Status::ok();
  });
}

retrogradStatus_t retrogradCreatePlanFromText(retrogradPlan_t* plan, const char* problem_text,
                                              retrogradDevice_t device) {
  return guard(__func__, [&]() -> Status {
    if (plan == nullptr) return {Code::kNullArgument, "plan is null"};
    RG_TRY(auto request, parse(problem_text));
    RG_TRY(runtime::Device* const where, find_device(device, "device"));
    RG_TRY(const auto judged, problem::judge(std::move(request)));
    RG_TRY(auto made, make_plan(judged, *where));
    publish(std::move(made), plan);
    return Status::ok();
  });
}

retrogradStatus_t retrogradDestroyPlan(retrogradPlan_t plan) {
  return guard(__func__, [&]() -> Status {
    if (plan == nullptr) return {Code::kNullArgument, "plan is null"};
    return plans().remove(plan) != nullptr ? Status::ok() : not_alive(plan);
  });
}

retrogradStatus_t retrogradGetWorkspaceSize(retrogradPlan_t plan, size_t* bytes) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto found, find(plan));
    if (bytes == nullptr) return {Code::kNullArgument, "bytes is null"};
    *bytes = found->plan->workspace_bytes();
    return Status::ok();
  });
}

retrogradStatus_t retrogradGetPlanCost(retrogradPlan_t plan, double* microseconds) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto found, find(plan));
    if (microseconds == nullptr) return {Code::kNullArgument, "microseconds is null"};
    *microseconds = found->plan->microseconds();
    return Status::ok();
  });
}

retrogradStatus_t retrogradDescribePlan(retrogradPlan_t plan, char* text, size_t capacity, size_t* length) {
  return guard(__func__, [&]() -> Status {
    RG_CHECK(check_buffer(text, capacity));
    RG_TRY(const auto found, find(plan));
    return hand_out(found->plan->describe(), text, capacity, length);
  });
}

retrogradStatus_t retrogradGetPlanTensor(retrogradPlan_t plan, retrogradOperand_t operand,
                                         retrogradTensor_t* tensor) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto found, find(plan));
    if (tensor == nullptr) return {Code::kNullArgument, "tensor is null"};
    if (operand < 0 || operand > RETROGRAD_OUTPUT)
      return Status(Code::kInvalidArgument, "operand is {}, expected 0 to {}", static_cast<int>(operand),
                    int{RETROGRAD_OUTPUT});
    const runtime::Device& device = found->plan->device();
    *tensor = {};
    tensor->rank = -1;
    tensor->device = {device.kind() == runtime::DeviceKind::kCpu ? RETROGRAD_CPU : RETROGRAD_CUDA,
                      device.index()};
    if (const auto& view = found->tensors[static_cast<size_t>(operand)]) {
      tensor->dtype = dtype_number(view->dtype);
      tensor->rank = view->shape.rank();
      tensor->shape = view->shape.begin();
      tensor->strides = view->strides.begin();
    }
    return Status::ok();
  });
}

retrogradStatus_t retrogradExecute(retrogradPlan_t plan, const retrogradAddresses_t* addresses,
                                   void* workspace, size_t workspace_size, void* stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto found, find(plan));
    if (addresses == nullptr) return {Code::kNullArgument, "addresses is null"};
    RG_TRY(const auto queue, find_stream(stream, found->plan->device()));
    return plan::Plan::execute(found->plan, bind(*addresses, found->forward), workspace, workspace_size,
                               *queue);
  });
}

retrogradStatus_t retrogradRun(const retrogradProblem_t* problem, void* stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto given, read_problem(problem));
    RG_TRY(const auto made, make_plan(given));
    runtime::Device& device = made->plan->device();
    RG_TRY(const auto queue, find_stream(stream, device));
    const plan::Bindings bindings = bind(addresses_of(given), made->forward);
    const size_t bytes = made->plan->workspace_bytes();
    RG_TRY(const auto workspace, Workspace::of(bytes, device, *queue));
    return plan::Plan::execute(made->plan, bindings, workspace->address(), bytes, *queue);
  });
}
