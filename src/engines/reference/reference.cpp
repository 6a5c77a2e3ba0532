// SPDX-License-Identifier: Apache-2.0
// Walks the elements of a pass's result, each summed by one thread in one order.
#include "engines/reference/reference.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/reference/passes.h"
#include "runtime/thread_pool.h"

namespace retrograd::engines::reference {
namespace {

using problem::AvgPoolPass;
using problem::BiasPass;
using problem::ConvPass;
using problem::ConvPassKind;

// About 20 µs of products: less is not worth handing to another thread, so tiny problems stay on the
// caller's.
constexpr int64_t kProductsPerRange = 8192;

// Calls element(index) for every index below `sizes`, rows shared out among the threads; `products` go into
// each element.
template <class Element>
void for_each_element(const Index5& sizes, int64_t products, runtime::ExecutionContext& context,
                      const Element& element) {
  const int64_t rows = sizes.n * sizes.c * sizes.d * sizes.h;
  const Checked row_products = Checked(products) * sizes.w;
  const int64_t grain =
      kProductsPerRange /
      std::clamp<int64_t>(row_products.get().value_or(kProductsPerRange), 1, kProductsPerRange);
  context.pool->parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t planes = row / sizes.h;
      const int64_t volumes = planes / sizes.d;
      Index5 index{volumes / sizes.c, volumes % sizes.c, planes % sizes.d, row % sizes.h, 0};
      for (; index.w < sizes.w; ++index.w) element(index);
    }
  });
}

void run(const ConvPass& p, const Bindings& bindings, runtime::ExecutionContext& context) {
  const auto& [wd, wh, ww] = p.axes;
  const Destination result(p.result(), bindings[p.result().operand]);
  const auto source = [&](const problem::PassTensor& tensor) {
    return Source(tensor, bindings[tensor.operand], p.rounding);
  };
  const int64_t taps = wd.kernel * wh.kernel * ww.kernel;
  switch (p.kind) {
    case ConvPassKind::kForward:
      return for_each_element({p.batch, p.y_channels, wd.y, wh.y, ww.y}, p.x_channels_per_group() * taps,
                              context, [&, x = source(p.x), w = source(p.w)](const Index5& i) {
                                result.put(i, forward_element(p, x, w, i));
                              });
    case ConvPassKind::kGradInput:
      return for_each_element({p.batch, p.x_channels, wd.x, wh.x, ww.x}, p.y_channels_per_group() * taps,
                              context, [&, y = source(p.y), w = source(p.w)](const Index5& i) {
                                result.put(i, grad_input_element(p, y, w, i));
                              });
    case ConvPassKind::kGradWeight:
      return for_each_element({p.y_channels, p.x_channels_per_group(), wd.kernel, wh.kernel, ww.kernel},
                              p.batch * wd.y * wh.y * ww.y, context,
                              [&, x = source(p.x), y = source(p.y)](const Index5& i) {
                                result.put(i, grad_weight_element(p, x, y, i));
                              });
  }
}

void run(const BiasPass& p, const Bindings& bindings, runtime::ExecutionContext& context) {
  const Source grad_output(p.grad_output, bindings[p.grad_output.operand], OperandRounding::kNone);
  const Destination grad_bias(p.grad_bias, bindings[p.grad_bias.operand]);
  for_each_element({1, p.channels, 1, 1, 1}, p.reduction_length(), context,
                   [&](const Index5& i) { grad_bias.put(i, grad_bias_element(p, grad_output, i.c)); });
}

void run(const AvgPoolPass& p, const Bindings& bindings, runtime::ExecutionContext& context) {
  const Source grad_output(p.grad_output, bindings[p.grad_output.operand], OperandRounding::kNone);
  const Destination grad_input(p.grad_input, bindings[p.grad_input.operand]);
  int64_t windows = 1;  // that hold one element
  for (const problem::PoolWindow& axis : p.axes) windows *= ceil_div(axis.kernel, axis.stride);
  for_each_element({p.batch, p.channels, p.axes[0].x, p.axes[1].x, p.axes[2].x}, windows, context,
                   [&](const Index5& i) { grad_input.put(i, avgpool_element(p, grad_output, i)); });
}

class ReferenceStep final : public Step {
 public:
  explicit ReferenceStep(const problem::Pass& pass) : pass_(pass) {}
  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    std::visit([&](const auto& pass) { reference::run(pass, bindings, context); }, pass_);
  }

 private:
  problem::Pass pass_;
};

class ReferenceCandidate final : public Candidate {
 public:
  const char* name() const override { return "reference"; }
  Support supports(const problem::Pass&) const override { return Support::yes(); }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<ReferenceStep>(pass);
  }
};

}  // namespace

const Candidate& candidate() {
  static const ReferenceCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::reference
