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
#include "gpu.h"
#include "kernels.h"
#include "policy.h"
#include "process_state.h"

#define RETROGRAD_TORCH_API extern "C" __attribute__((visibility("default")))

namespace {

using namespace retrograd_torch;
using torch::stable::detail::StableLibrary;

struct Registration {
  Op op;
  const char* dispatch_keys[2];  // by retrogradDeviceType_t
  void (*kernel)(StableIValue*, uint64_t, uint64_t);
};

// A kernel sees by its operands where it is to run.
constexpr Registration kRegistrations[] = {
    {Op::kConvolutionBackward, {"CPU", "CUDA"}, convolution_backward},
    {Op::kConvTbcBackward, {"AutogradCPU", "AutogradCUDA"}, conv_tbc_backward},
    {Op::kAvgPool2dBackward, {"CPU", "CUDA"}, avg_pool2d_backward},
    {Op::kAvgPool3dBackward, {"CPU", "CUDA"}, avg_pool3d_backward},
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

// Bit i of `ops`: operator i of the enumeration Op; of `devices`: retrogradDeviceType_t i.
RETROGRAD_TORCH_API const char* retrograd_torch_install(uint32_t ops, uint32_t devices) {
  return guarded([&]() -> const char* {
    const auto has = [](uint32_t bits, uint32_t number) { return (bits >> number & 1u) != 0; };
    installed().clear();
    if (has(devices, RETROGRAD_CPU))
      if (const char* failure = loops_on_torch_threads(true)) return failure;
    for (const Registration& row : kRegistrations) {
      for (const uint32_t device : {RETROGRAD_CPU, RETROGRAD_CUDA}) {
        if (!has(ops, static_cast<uint32_t>(row.op)) || !has(devices, device)) continue;
        auto library = std::make_unique<StableLibrary>(StableLibrary::Kind::IMPL, "aten",
                                                       row.dispatch_keys[device], __FILE__, __LINE__);
        library->impl(name_of(row.op), row.kernel);
        installed().push_back(std::move(library));
      }
    }
    return nullptr;
  });
}

// Why operators of CUDA tensors cannot be overridden; null when they can.
RETROGRAD_TORCH_API const char* retrograd_torch_why_no_gpu() {
  return guarded([]() -> const char* { return why_no_gpu(); });
}

// 0: convolutions, 1: matrix products. For tests.
RETROGRAD_TORCH_API uint32_t retrograd_torch_tf32(uint32_t products) {
  return tf32_is_allowed(static_cast<Products>(products)) ? 1 : 0;
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
