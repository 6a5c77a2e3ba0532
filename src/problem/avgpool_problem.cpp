// SPDX-License-Identifier: Apache-2.0
// Judges an average-pooling request, backward or forward, and makes the problem of it.
#include <fmt/format.h>

#include <span>
#include <utility>

#include "base/checked.h"
#include "problem/conv_canonical.h"
#include "problem/problem.h"

namespace retrograd::problem {
namespace {

class PoolJudge {
 public:
  explicit PoolJudge(const AvgPoolRequest& request) : r_(request), names_(request.names) {}

  Status judge() {
    RG_CHECK(judge_ranks());
    RG_CHECK(judge_attribute(r_.kernel, names_.kernel, 1, false));
    RG_CHECK(judge_attribute(r_.stride, names_.stride, 1, true));
    RG_CHECK(judge_attribute(r_.padding, names_.padding, 0, false));
    for (int axis = 0; axis < spatial_rank_; ++axis) RG_CHECK(judge_axis(axis));
    RG_CHECK(judge_types());
    return judge_shapes();
  }

  AvgPoolPass pass() const {
    AvgPoolPass pass;
    pass.batch = batched_ ? r_.input.shape[0] : 1;
    pass.channels = r_.input.shape[batched_ ? 1 : 0];
    pass.axes = axes_;
    pass.count_include_pad = r_.count_include_pad;
    pass.divisor_override = r_.divisor_override;
    pass.forward = r_.forward;
    pass.y = tensor(r_.forward ? Operand::kOutput : Operand::kGradOutput, r_.grad_output);
    pass.x = r_.forward ? tensor(Operand::kInput, r_.input) : tensor(Operand::kGradInput, r_.grad_input);
    return pass;
  }

 private:
  Status judge_ranks() {
    const int rank = r_.input.shape.rank();
    const bool known = r_.spatial_rank > 0;
    spatial_rank_ = known ? r_.spatial_rank : rank - 2;
    batched_ = !known || rank == spatial_rank_ + 2;
    if (known ? (rank != spatial_rank_ + 1 && rank != spatial_rank_ + 2) : (rank < 3 || rank > 5))
      return Status(Code::kBadShape, "{}.shape has rank {} ({}), expected {}", names_.input, rank,
                    to_string(r_.input.shape),
                    known ? fmt::format("{} or {}: (N,) C and {} spatial sizes", spatial_rank_ + 1,
                                        spatial_rank_ + 2, spatial_rank_)
                          : "3, 4 or 5: N, C and one to three spatial sizes");
    RG_CHECK(expect_rank(r_.grad_output, rank, names_.grad_output, "the rank of the input"));
    RG_CHECK(check_view(r_.input, names_.input));
    RG_CHECK(check_view(r_.grad_output, names_.grad_output));
    for (int axis = 0; axis < spatial_rank_; ++axis) {
      const int dim = first_spatial() + axis;
      if (r_.input.shape[dim] < 1)
        return Status(Code::kBadShape, "{}.shape[{}] is {}, expected a spatial size of at least 1",
                      names_.input, dim, r_.input.shape[dim]);
    }
    return Status::ok();
  }

  Status judge_attribute(const std::vector<int64_t>& values, const char* name, int64_t minimum,
                         bool may_be_empty) {
    const auto axes = static_cast<size_t>(spatial_rank_);
    if (values.size() != 1 && values.size() != axes && !(may_be_empty && values.empty()))
      return Status(Code::kInvalidArgument, "{} has {} entries, expected {}1 or {}", name, values.size(),
                    may_be_empty ? "0 (as the kernel), " : "", axes);
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] < minimum)
        return Status(Code::kInvalidArgument, "{}[{}] is {}, expected at least {}", name, i, values[i],
                      minimum);
    return Status::ok();
  }

  static int64_t entry(const std::vector<int64_t>& values, int axis) {
    return values[values.size() == 1 ? 0 : static_cast<size_t>(axis)];
  }

  Status judge_axis(int axis) {
    const int dim = first_spatial() + axis;
    PoolWindow& w = axes_[static_cast<size_t>(3 - spatial_rank_ + axis)];
    w.x = r_.input.shape[dim];
    w.y = r_.grad_output.shape[dim];
    w.kernel = entry(r_.kernel, axis);
    w.stride = r_.stride.empty() ? w.kernel : entry(r_.stride, axis);
    w.pad = entry(r_.padding, axis);
    if (w.pad > w.kernel / 2)
      return Status(Code::kInvalidArgument, "{}[{}] is {}, expected at most {}: half the kernel of {}",
                    names_.padding, r_.padding.size() == 1 ? 0 : axis, w.pad, w.kernel / 2, w.kernel);
    return judge_size(dim, w);
  }

  Status judge_size(int dim, const PoolWindow& w) const {
    const auto facts = [&] {
      return fmt::format("{} {}, kernel {}, stride {}, padding {}, {} mode", names_.input, w.x, w.kernel,
                         w.stride, w.pad, r_.ceil_mode ? "ceil" : "floor");
    };
    // Everything pooled_positions and its inverse form, twice over.
    const Checked reach = (Checked(w.y) * w.stride + w.x + w.kernel + w.pad + w.pad + w.stride) * 2;
    const auto size = pool_output_size(w, r_.ceil_mode, true);
    const auto plain = pool_output_size(w, r_.ceil_mode, false);
    if (!reach.get() || !size || !plain)
      return Status(Code::kBadShape, "{}.shape[{}] is {}: the window positions do not fit in 64 bits ({})",
                    names_.grad_output, dim, w.y, facts());
    if (*size < 1)
      return Status(Code::kBadShape,
                    "the kernel does not fit into the padded input: {}.shape[{}] would be {} ({})",
                    names_.grad_output, dim, *size, facts());
    const bool plain_is_legal = r_.ceil_mode && r_.uncorrected_ceil_sizes;
    if (w.y == *size || (plain_is_legal && w.y == *plain)) return Status::ok();
    const std::string alternative = plain_is_legal && *plain != *size
                                        ? fmt::format(" (or {}, without the last-window correction)", *plain)
                                        : "";
    return Status(Code::kBadShape,
                  "{}.shape[{}] is {}, expected {}{} = floor(({} + 2*{} - {}{})/{}) + 1{} ({})",
                  names_.grad_output, dim, w.y, *size, alternative, w.x, w.pad, w.kernel,
                  r_.ceil_mode ? fmt::format(" + {} - 1", w.stride) : "", w.stride,
                  *plain != *size ? ", less 1 as the last window would start beyond the input" : "", facts());
  }

  Status judge_types() const {
    const std::pair<const TensorView*, const char*> all[] = {{&r_.grad_output, names_.grad_output},
                                                             {&r_.input, names_.input},
                                                             {&r_.grad_input, names_.grad_input}};
    const auto& [model, model_name] = all[r_.forward ? 1 : 0];
    for (auto [view, name] : std::span(all).first(r_.forward ? 2 : 3)) {
      if (is_8bit(view->dtype))
        return Status(Code::kBadDtype, "{}.dtype is {}, expected f32, f16 or bf16", name,
                      name_of(view->dtype));
      if (view->dtype != model->dtype)
        return Status(Code::kBadDtype, "{}.dtype is {}, expected {}: the type of {}", name,
                      name_of(view->dtype), name_of(model->dtype), model_name);
    }
    return Status::ok();
  }

  Status judge_shapes() const {
    for (int dim = 0; dim < first_spatial(); ++dim)
      if (r_.grad_output.shape[dim] != r_.input.shape[dim])
        return Status(Code::kBadShape, "{}.shape[{}] is {}, expected {} as in {}: batch and channels agree",
                      names_.grad_output, dim, r_.grad_output.shape[dim], r_.input.shape[dim], names_.input);
    if (r_.forward) return check_output_view(r_.grad_output, names_.grad_output);
    RG_CHECK(expect_shape(r_.grad_input, r_.input.shape, names_.grad_input, "the shape of the input"));
    return check_output_view(r_.grad_input, names_.grad_input);
  }

  PassTensor tensor(Operand operand, const TensorView& view) const {
    if (batched_) return {operand, view.dtype, strides_5d(view)};
    TensorView with_batch = view;
    with_batch.shape = {1};
    with_batch.strides = {0};
    for (int i = 0; i < view.shape.rank(); ++i) {
      with_batch.shape.push_back(view.shape[i]);
      with_batch.strides.push_back(view.strides[i]);
    }
    return {operand, view.dtype, strides_5d(with_batch)};
  }

  int first_spatial() const { return batched_ ? 2 : 1; }

  const AvgPoolRequest& r_;
  const PoolNames& names_;
  int spatial_rank_ = 0;
  bool batched_ = true;
  std::array<PoolWindow, 3> axes_;
};

}  // namespace

Status fill_problem(const AvgPoolRequest& request, Problem& problem) {
  PoolJudge judge(request);
  RG_CHECK(judge.judge());
  // A window holds at least one place of its plane: either tensor is empty with the other.
  if (element_count(request.input.shape).value_or(0) > 0) problem.passes.emplace_back(judge.pass());
  const OperandFacts y = facts_of(request.names.grad_output, request.grad_output);
  if (request.forward) {
    problem.facts(Operand::kOutput) = y;
    problem.facts(Operand::kInput) = facts_of(request.names.input, request.input);
  } else {
    problem.facts(Operand::kGradOutput) = y;
    problem.facts(Operand::kGradInput) = facts_of(request.names.grad_input, request.grad_input);
  }
  return Status::ok();
}

}  // namespace retrograd::problem
