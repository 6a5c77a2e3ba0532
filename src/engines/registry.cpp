// SPDX-License-Identifier: Apache-2.0
// The lists of candidates. Order breaks ties of cost; adding an implementation is a line here and one in
// tuning/.
#include "engines/registry.h"

#include <array>

#include "base/settings.h"
#include "engines/cpu/implementations.h"
#include "engines/cuda/implementations.h"
#include "engines/reference/reference.h"
#include "kernels/cpu/targets.h"

namespace retrograd::engines {

std::span<const Candidate* const> candidates(runtime::DeviceKind kind) {
  // Before the first kernel is asked how wide a vector is.
  [[maybe_unused]] static const bool limited = kernels::cpu::limit_targets(settings().cpu_isa);
  static const auto on_cpu = std::to_array<const Candidate*>({
      &cpu::live_taps(),                   // all three: kernels with ends that never meet x
      &cpu::few_places_gather(),           // grad_input: few places of y, weights as they lie
      &cpu::few_places_forward(),          // forward: the same
      &cpu::few_places_grad_weight(),      // grad_weight: the same
      &cpu::winograd_gather(),             // forward, grad_input: 3x3, where reduced precision is allowed
      &cpu::winograd_grad_weight(),        // grad_weight: the same
      &cpu::amx_gather(),                  // forward, grad_input: bf16 or f16 on machines with tile registers
      &cpu::amx_grad_weight(),             // grad_weight: the same
      &cpu::amx_places_grad_weight(),      // grad_weight: the same, sums over neighbouring places
      &cpu::bf16_gather(),                 // forward, grad_input: bf16 on machines that multiply it
      &cpu::bf16_grad_weight(),            // grad_weight: the same
      &cpu::pointwise_gather(),            // forward, grad_input: kernels of one tap
      &cpu::depthwise_wide_gather(),       // forward, grad_input: one channel a group, rows as they lie
      &cpu::depthwise_line_gather(),       // forward, grad_input: the same in one dimension
      &cpu::depthwise_channels_gather(),   // forward, grad_input: one channel a group, channels side by side
      &cpu::depthwise_gather(),            // forward, grad_input: one channel a group
      &cpu::narrow_gather(),               // forward, grad_input: few channels a group
      &cpu::dense_gather(),                // forward, grad_input
      &cpu::depthwise_wide_grad_weight(),  // grad_weight: one channel a group, rows as they lie
      &cpu::depthwise_line_grad_weight(),  // grad_weight: the same in one dimension
      &cpu::depthwise_channels_grad_weight(),  // grad_weight: one channel a group, channels side by side
      &cpu::depthwise_grad_weight(),           // grad_weight: one channel a group
      &cpu::narrow_grad_weight(),              // grad_weight: few channels a group
      &cpu::stem_grad_weight(),                // grad_weight: few x channels, many y channels
      &cpu::dense_grad_weight(),               // grad_weight
      &cpu::im2col(),                          // all three: windows inside x, as a convolution of one tap
      &cpu::chunked_bias(),                    // grad_bias
      &cpu::avgpool_channels(),                // average pooling backward, channels side by side
      &cpu::avgpool_rows(),                    // average pooling backward
      &cpu::avgpool_windows(),                 // average pooling forward
      &reference::candidate(),                 // everything
  });
  switch (kind) {
    case runtime::DeviceKind::kCpu:
      return on_cpu;
    case runtime::DeviceKind::kCuda:
      return cuda::candidates();
  }
  return {};
}

}  // namespace retrograd::engines
