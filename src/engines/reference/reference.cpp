// SPDX-License-Identifier: Apache-2.0
// Walks the elements of a pass's result, each summed by one thread in one order.
#include "engines/reference/reference.h"

#include <algorithm>
#include <optional>

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

// Calls element(index) for every index of the result, rows shared out among the threads.
template <class Element>
void for_each_element(const ResultShape& shape, runtime::ExecutionContext& context, const Element& element) {
  const Index5& sizes = shape.sizes;
  const int64_t rows = sizes.n * sizes.c * sizes.d * sizes.h;
  const Checked row_products = Checked(shape.terms) * sizes.w;
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
  const Destination result(p.result(), bindings[p.result().operand]);
  const auto source = [&](const problem::PassTensor& tensor) {
    return Source(tensor, bindings[tensor.operand], p.rounding);
  };
  const auto bias_of = [bias = p.bias ? Source(*p.bias, bindings[p.bias->operand], OperandRounding::kNone)
                                      : std::optional<Source>()](const Index5& i) {
    return bias ? (*bias)({0, i.c, 0, 0, 0}) : 0.0;
  };
  const ResultShape shape = result_shape(p);
  switch (p.kind) {
    case ConvPassKind::kForward:
      return for_each_element(shape, context, [&, x = source(p.x), w = source(p.w)](const Index5& i) {
        result.put(i, bias_of(i) + forward_element(p, x, w, i));
      });
    case ConvPassKind::kGradInput:
      return for_each_element(shape, context, [&, y = source(p.y), w = source(p.w)](const Index5& i) {
        result.put(i, bias_of(i) + grad_input_element(p, y, w, i));
      });
    case ConvPassKind::kGradWeight:
      return for_each_element(shape, context, [&, x = source(p.x), y = source(p.y)](const Index5& i) {
        result.put(i, grad_weight_element(p, x, y, i));
      });
  }
}

void run(const BiasPass& p, const Bindings& bindings, runtime::ExecutionContext& context) {
  const Source grad_output(p.grad_output, bindings[p.grad_output.operand], OperandRounding::kNone);
  const Destination grad_bias(p.grad_bias, bindings[p.grad_bias.operand]);
  for_each_element(result_shape(p), context,
                   [&](const Index5& i) { grad_bias.put(i, grad_bias_element(p, grad_output, i.c)); });
}

void run(const AvgPoolPass& p, const Bindings& bindings, runtime::ExecutionContext& context) {
  const problem::PassTensor& from = p.forward ? p.x : p.y;
  const Source source(from, bindings[from.operand], OperandRounding::kNone);
  const Destination result(p.result(), bindings[p.result().operand]);
  for_each_element(result_shape(p), context, [&](const Index5& i) {
    result.put(i, p.forward ? avgpool_forward_element(p, source, i) : avgpool_element(p, source, i));
  });
}

class ReferenceStep final : public Step {
 public:
  explicit ReferenceStep(const problem::Pass& pass) : pass_(pass) {}
  std::string describe() const override { return "one element after another, sums in double"; }
  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    std::visit([&](const auto& pass) { reference::run(pass, bindings, context); }, pass_);
  }

 private:
  problem::Pass pass_;
};

class ReferenceCandidate final : public Candidate {
 public:
  const char* name() const override { return "reference"; }
  Support supports(const problem::Pass&, const Machine& /*machine*/) const override { return Support::yes(); }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<ReferenceStep>(pass);
  }
};

}  // namespace

const Candidate& candidate() {
  static const ReferenceCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::reference
