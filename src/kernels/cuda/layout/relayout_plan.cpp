// SPDX-License-Identifier: Apache-2.0
// Axes in the target's order, joined where both tensors allow it.
#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/layout/relayout.h"

namespace retrograd::kernels::cuda {
namespace {

struct Axis1 {
  int64_t size, from, to;
};

}  // namespace

RelayoutPlan relayout_plan(const int64_t (&sizes)[5], const int64_t (&from)[5], const int64_t (&to)[5]) {
  Axis1 axes[5];
  int count = 0;
  for (int i = 0; i < 5; ++i)
    if (sizes[i] > 1) axes[count++] = {sizes[i], from[i], to[i]};
  std::stable_sort(axes, axes + count,
                   [](const Axis1& a, const Axis1& b) { return std::abs(a.to) > std::abs(b.to); });
  RelayoutPlan plan;
  int joined = 0;
  for (int i = 0; i < count; ++i) {
    const Axis1& axis = axes[i];
    if (joined > 0 && plan.from[joined - 1] == axis.from * axis.size &&
        plan.to[joined - 1] == axis.to * axis.size) {
      plan.sizes[joined - 1] *= axis.size;
    } else {
      plan.sizes[joined++] = axis.size;
    }
    plan.from[joined - 1] = axis.from;
    plan.to[joined - 1] = axis.to;
  }
  plan.axes = std::max(joined, 1);
  // What is read again and again does not count: it stays in the caches.
  plan.across = plan.axes - 1;
  for (int i = plan.axes - 2; i >= 0; --i) {
    const int64_t least = std::abs(plan.from[plan.across]), stride = std::abs(plan.from[i]);
    if (least != 0 && stride != 0 && stride < least) plan.across = i;
  }
  return plan;
}

int widen(RelayoutPlan& plan, int element_bytes, int alignment) {
  const int last = plan.axes - 1;
  if (plan.across != last || plan.from[last] != 1 || plan.to[last] != 1) return 1;
  int wide = std::min(16, alignment) / element_bytes;
  const auto fits = [&](int vector) {
    if (plan.sizes[last] % vector != 0) return false;
    for (int i = 0; i < last; ++i)
      if (plan.from[i] % vector != 0 || plan.to[i] % vector != 0) return false;
    return true;
  };
  while (wide > 1 && !fits(wide)) wide /= 2;
  if (wide <= 1) return 1;
  plan.sizes[last] /= wide;
  for (int i = 0; i < last; ++i) plan.from[i] /= wide, plan.to[i] /= wide;
  return wide;
}

}  // namespace retrograd::kernels::cuda
