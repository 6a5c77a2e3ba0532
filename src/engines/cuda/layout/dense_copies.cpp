// SPDX-License-Identifier: Apache-2.0
// Operands that are neither planes nor channels last, or not all of them the same, into copies of one dense
// layout in the workspace; the cheapest implementation for those; the result back. Which layout: the one for
// which copies and implementation cost less. Depthwise passes in channels-last tensors may take planes, too.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "engines/cost.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/layout/relayout.h"

namespace retrograd::engines::cuda {
namespace {

using problem::AvgPoolPass;
using problem::BiasPass;
using problem::ConvPass;
using problem::Operand;
using problem::Pass;
using problem::PassTensor;

enum class Layout : unsigned char { kPlanes, kChannelsLast };

problem::Strides5 dense_strides(const Sizes5& sizes, Layout layout) {
  return layout == Layout::kPlanes ? plane_strides(sizes) : channels_last_strides(sizes);
}
bool has_layout(const PassTensor& tensor, const Sizes5& sizes, Layout layout) {
  return layout == Layout::kPlanes ? is_planes(tensor, sizes) : is_channels_last(tensor, sizes);
}

// A tensor with images: the pass's own, and its sizes.
struct Image {
  PassTensor* tensor;
  Sizes5 sizes;
};
std::vector<Image> images_of(ConvPass& p) {
  if (p.kind == problem::ConvPassKind::kForward) return {{&p.y, y_sizes(p)}, {&p.x, x_sizes(p)}};
  return {{&p.x, x_sizes(p)}, {&p.y, y_sizes(p)}};
}
std::vector<Image> images_of(AvgPoolPass& p) { return {{&p.x, x_sizes(p)}, {&p.y, y_sizes(p)}}; }
std::vector<Image> images_of(BiasPass& p) { return {{&p.grad_output, sizes_of(p)}}; }

struct Copy {
  PassTensor given, dense;
  Sizes5 sizes;
  bool is_result;
  size_t bytes() const {
    int64_t elements = 1;
    for (int64_t size : sizes) elements *= size;
    return (static_cast<size_t>(elements) * size_of(given.dtype) + 255) / 256 * 256;
  }
};

// The pass on copies. grad_output comes first: the call's next step may want it.
struct Copied {
  Pass pass;
  Layout layout;
  std::vector<Copy> copies;
};
Copied in_layout(const Pass& pass, Layout layout) {
  Copied copied{pass, layout, {}};
  const Operand result = result_of(pass).operand;
  std::visit(
      [&](auto& p) {
        std::vector<Image> images = images_of(p);
        // Weights are read by small kernels or made into rows: whichever dense layout they have.
        if constexpr (std::is_same_v<std::decay_t<decltype(p)>, ConvPass>)
          if (const Sizes5 sizes = w_sizes(p); !is_planes(p.w, sizes) && !is_channels_last(p.w, sizes))
            images.push_back({&p.w, sizes});
        for (const auto& [tensor, sizes] : images) {
          const Layout wanted = tensor->operand == Operand::kWeight || tensor->operand == Operand::kGradWeight
                                    ? Layout::kPlanes
                                    : layout;
          if (has_layout(*tensor, sizes, wanted)) continue;
          const PassTensor given = *tensor;
          tensor->strides = dense_strides(sizes, wanted);
          const auto at = given.operand == Operand::kGradOutput ? copied.copies.begin() : copied.copies.end();
          copied.copies.insert(at, Copy{given, *tensor, sizes, given.operand == result});
        }
      },
      copied.pass);
  return copied;
}

// The implementation of the copies, and what all of it costs.
struct Found {
  Copied copied;
  const Candidate* candidate = nullptr;
};
std::optional<Found> find(const Pass& pass, const Machine& machine) {
  std::optional<Found> found;
  double least = std::numeric_limits<double>::infinity();
  for (Layout layout : {Layout::kPlanes, Layout::kChannelsLast}) {
    Copied copied = in_layout(pass, layout);
    if (copied.copies.empty()) continue;
    double bytes = 0;
    for (const Copy& copy : copied.copies) bytes += static_cast<double>(copy.bytes());
    Times times(pass, machine);
    times.add_copy(bytes);
    const Candidate* best = nullptr;
    double microseconds = std::numeric_limits<double>::infinity();
    for (const Candidate* candidate : candidates())
      if (candidate != &dense_copies() && !candidate->reduces_precision() &&
          candidate->supports(copied.pass, machine).accepted())
        if (const double one = cost(*candidate, copied.pass, machine); one < microseconds)
          best = candidate, microseconds = one;
    if (best == nullptr || times.microseconds() + microseconds >= least) continue;
    least = times.microseconds() + microseconds;
    found = Found{std::move(copied), best};
  }
  return found;
}

class CopiesStep final : public Step {
 public:
  CopiesStep(Found found, std::unique_ptr<const Step> inner)
      : layout_(found.copied.layout),
        copies_(std::move(found.copied.copies)),
        name_(found.candidate->name()),
        inner_(std::move(inner)) {}
  size_t workspace_bytes() const override {
    size_t bytes = inner_->workspace_bytes();
    for (const Copy& copy : copies_) bytes += copy.bytes();
    return bytes;
  }
  std::string describe() const override {
    std::string text = "copies of";
    for (const Copy& copy : copies_) text += fmt::format(" {},", name_of(copy.given.operand));
    return fmt::format("{} {}; {}: {}", text, layout_ == Layout::kPlanes ? "in planes" : "channels last",
                       name_, inner_->describe());
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    run_from(bindings, workspace, false, context);
  }
  std::string_view left_copy() const override {
    if (copies_.front().given.operand != Operand::kGradOutput) return {};
    return layout_ == Layout::kPlanes ? "dense planes" : "dense channels last";
  }
  void run_with_copy(const Bindings& bindings, std::byte* workspace,
                     runtime::ExecutionContext& context) const override {
    run_from(bindings, workspace, true, context);
  }

 private:
  static kernels::cuda::Tensor tensor_of(const PassTensor& tensor, void* data) {
    kernels::cuda::Tensor t{data, tensor.dtype, {}};
    for (size_t i = 0; i < 5; ++i) t.strides[i] = tensor.strides[i];
    return t;
  }
  static void move(const Copy& copy, void* given, void* dense, kernels::cuda::Stream stream) {
    int64_t sizes[5];
    std::copy(copy.sizes.begin(), copy.sizes.end(), sizes);
    const auto caller = tensor_of(copy.given, given), mine = tensor_of(copy.dense, dense);
    copy.is_result ? kernels::cuda::relayout(sizes, mine, caller, stream)
                   : kernels::cuda::relayout(sizes, caller, mine, stream);
  }
  void run_from(const Bindings& bindings, std::byte* workspace, bool grad_output_is_there,
                runtime::ExecutionContext& context) const {
    const auto stream = stream_of(context);
    Bindings inner = bindings;
    for (const Copy& copy : copies_) {
      const Operand operand = copy.given.operand;
      inner.set(operand, workspace);
      if (!copy.is_result && !(grad_output_is_there && operand == Operand::kGradOutput))
        move(copy, bindings[operand], workspace, stream);
      workspace += copy.bytes();
    }
    inner_->run(inner, workspace, context);
    for (const Copy& copy : copies_)
      if (copy.is_result) move(copy, bindings[copy.given.operand], inner[copy.given.operand], stream);
  }

  Layout layout_;
  std::vector<Copy> copies_;
  const char* name_;
  std::unique_ptr<const Step> inner_;
};

bool is_depthwise(const Pass& pass) {
  const auto* conv = std::get_if<ConvPass>(&pass);
  return conv != nullptr && conv->groups == conv->x_channels && conv->groups > 1;
}

class CopiesCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.dense_copies"; }
  Support supports(const Pass& pass, const Machine& /*machine*/) const override {
    const Copied planes = in_layout(pass, Layout::kPlanes);
    if (planes.copies.empty() ||
        (!is_depthwise(pass) && in_layout(pass, Layout::kChannelsLast).copies.empty()))
      return Support::no("operands are dense and of one layout");
    for (const Copied& copied : {planes, in_layout(pass, Layout::kChannelsLast)})
      for (const Copy& copy : copied.copies)
        if (!fits_31_bits(copy.sizes)) return Support::no("needs 1 to 2^31 - 1 elements");
    return Support::yes();
  }
  Effort effort(const Pass& pass, const Machine& machine) const override {
    const auto found = find(pass, machine);
    Times times(pass, machine);
    for (const Copy& copy : found->copied.copies) times.add_copy(static_cast<double>(copy.bytes()));
    return times.effort();
  }
  std::optional<Rest> rest(const Pass& pass, const Machine& machine) const override {
    auto found = find(pass, machine);
    return Rest{found->candidate, std::move(found->copied.pass)};
  }
  std::unique_ptr<const Step> make_step(const Pass& pass, const Machine& machine) const override {
    auto found = find(pass, machine);
    auto inner = found->candidate->make_step(found->copied.pass, machine);
    if (inner == nullptr) return nullptr;
    return std::make_unique<CopiesStep>(std::move(*found), std::move(inner));
  }
};

}  // namespace

const Candidate& dense_copies() {
  static const CopiesCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
