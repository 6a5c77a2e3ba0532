// SPDX-License-Identifier: Apache-2.0
// What Python calls through ctypes: install, uninstall, policy, counts. A sentence is returned when something
// fails, null when not.
#include <torch/csrc/stable/library.h>

#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "counters.h"
#include "kernels.h"
#include "policy.h"
#include "process_state.h"

#define RETROGRAD_TORCH_API extern "C" __attribute__((visibility("default")))

namespace {

using namespace retrograd_torch;
using torch::stable::detail::StableLibrary;

struct Registration {
  Op op;
  const char* dispatch_key;
  void (*kernel)(StableIValue*, uint64_t, uint64_t);
};

constexpr Registration kRegistrations[] = {
    {Op::kConvolutionBackward, "CPU", convolution_backward},
    {Op::kConvTbcBackward, "AutogradCPU", conv_tbc_backward},
    {Op::kAvgPool2dBackward, "CPU", avg_pool2d_backward},
    {Op::kAvgPool3dBackward, "CPU", avg_pool3d_backward},
};

// Python calls with its lock held, one call at a time. Never destroyed: PyTorch may be gone by then.
std::vector<std::unique_ptr<StableLibrary>>& installed() {
  static auto* libraries = new std::vector<std::unique_ptr<StableLibrary>>;
  return *libraries;
}

thread_local std::string answer;

template <class Body>
const char* guarded(Body&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    answer = error.what();
    return answer.c_str();
  }
}

}  // namespace

// Bit i of `ops`: operator i of the enumeration Op.
RETROGRAD_TORCH_API const char* retrograd_torch_install(uint32_t ops) {
  return guarded([&]() -> const char* {
    installed().clear();
    if (const char* failure = loops_on_torch_threads(true)) return failure;
    for (const Registration& row : kRegistrations) {
      if ((ops >> static_cast<uint32_t>(row.op) & 1u) == 0) continue;
      auto library = std::make_unique<StableLibrary>(StableLibrary::Kind::IMPL, "aten", row.dispatch_key,
                                                     __FILE__, __LINE__);
      library->impl(name_of(row.op), row.kernel);
      installed().push_back(std::move(library));
    }
    return nullptr;
  });
}

RETROGRAD_TORCH_API const char* retrograd_torch_uninstall() {
  return guarded([]() -> const char* {
    installed().clear();
    process_state().plans.clear();
    process_state().workspaces.clear();
    return loops_on_torch_threads(false);
  });
}

// 0: auto, 1: always, 2: depthwise.
RETROGRAD_TORCH_API void retrograd_torch_set_policy(uint32_t policy) {
  set_policy(static_cast<Policy>(policy));
}

RETROGRAD_TORCH_API const char* retrograd_torch_counts() {
  return guarded([]() -> const char* {
    answer = counts_as_json();
    return answer.c_str();
  });
}
RETROGRAD_TORCH_API void retrograd_torch_reset_counts() { reset_counts(); }
RETROGRAD_TORCH_API void retrograd_torch_begin_probe() { begin_probe(); }
RETROGRAD_TORCH_API uint64_t retrograd_torch_end_probe() { return end_probe(); }
RETROGRAD_TORCH_API uint64_t retrograd_torch_plans() { return process_state().plans.size(); }
RETROGRAD_TORCH_API uint64_t retrograd_torch_kept_bytes() { return process_state().workspaces.kept(); }

RETROGRAD_TORCH_API void retrograd_torch_note_error(const char* text) {
  guarded([&]() -> const char* {
    note_original_error(text == nullptr ? "" : text);
    return nullptr;
  });
}
