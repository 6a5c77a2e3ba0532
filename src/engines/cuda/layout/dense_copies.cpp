// SPDX-License-Identifier: Apache-2.0
// Operands that are neither planes nor channels last, or not all of them the same, into copies of one dense
// layout in the workspace; the cheapest implementation for those; the result back. Which layout: the one for
// which copies and implementation cost less. Depthwise passes in channels-last tensors may take planes, too,
// those of few channels a group in planes channels last.
// Convolutions in 16 bits whose channels are no multiples of 8 may take copies with channels of zeros behind
// them: products of warpgroups need rows of whole 16-byte chunks.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "engines/cost.h"
#include "engines/cuda/candidate.h"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/layout/relayout.h"
#include "kernels/cuda/layout/scratch.h"

namespace retrograd::engines::cuda {
namespace {

using problem::Operand;
using problem::Pass;

enum class Layout : unsigned char { kPlanes, kChannelsLast, kFilled };

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
  if (is_forward(p)) return {{&p.y, y_sizes(p)}, {&p.x, x_sizes(p)}};
  return {{&p.x, x_sizes(p)}, {&p.y, y_sizes(p)}};
}
std::vector<Image> images_of(AvgPoolPass& p) { return {{&p.x, x_sizes(p)}, {&p.y, y_sizes(p)}}; }
std::vector<Image> images_of(BiasPass& p) { return {{&p.grad_output, sizes_of(p)}}; }

// Channels last, with channels of zeros up to the next multiple of 8.
constexpr int64_t kChunk = 8, kFewChannels = 32;
int64_t filled(int64_t channels) { return ceil_div(channels, kChunk) * kChunk; }
bool can_fill(const Pass& pass) {
  const auto* p = std::get_if<ConvPass>(&pass);
  return p != nullptr && p->groups == 1 && !p->bias && size_of(p->x.dtype) == 2 && p->x.dtype == p->y.dtype &&
         p->x.dtype == p->w.dtype && p->rounding == OperandRounding::kNone && p->x_channels > kChunk &&
         p->y_channels > kChunk && (p->x_channels % kChunk != 0 || p->y_channels % kChunk != 0);
}

struct Copy {
  PassTensor given, dense;
  Sizes5 sizes;  // of the copy
  Sizes5 taken;  // of what is copied
  Layout layout;
  bool is_result;
  size_t bytes() const { return room_of(sizes, given.dtype); }
};

// The pass on copies: of what it reads, grad_output first, since the call's next step may read the same; then
// of its result.
struct Copied {
  Pass pass;
  Layout layout;
  std::vector<Copy> copies;
};
void put_in_order(std::vector<Copy>& copies) {
  const auto rank = [](const Copy& c) {
    return c.is_result ? 2 : c.given.operand == Operand::kGradOutput ? 0 : 1;
  };
  std::stable_sort(copies.begin(), copies.end(),
                   [&](const Copy& a, const Copy& b) { return rank(a) < rank(b); });
}

Copied in_filled_channels(const Pass& pass);
Copied in_layout(const Pass& pass, Layout layout) {
  if (layout == Layout::kFilled) return in_filled_channels(pass);
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
          copied.copies.push_back({given, *tensor, sizes, sizes, wanted, given.operand == result});
        }
      },
      copied.pass);
  put_in_order(copied.copies);
  return copied;
}
Copied in_filled_channels(const Pass& pass) {
  Copied copied{pass, Layout::kFilled, {}};
  const auto& given = std::get<ConvPass>(pass);
  auto& p = std::get<ConvPass>(copied.pass);
  p.x_channels = filled(p.x_channels), p.y_channels = filled(p.y_channels);
  const auto add = [&](PassTensor& tensor, const Sizes5& taken, const Sizes5& sizes) {
    if (sizes == taken && is_channels_last(tensor, sizes)) return;
    const PassTensor before = tensor;
    tensor.strides = channels_last_strides(sizes);
    copied.copies.push_back(
        {before, tensor, sizes, taken, Layout::kFilled, before.operand == result_of(pass).operand});
  };
  add(p.x, x_sizes(given), x_sizes(p));
  add(p.y, y_sizes(given), y_sizes(p));
  add(p.w, w_sizes(given), w_sizes(p));
  put_in_order(copied.copies);
  return copied;
}

bool is_depthwise(const Pass& pass) {
  const auto* conv = std::get_if<ConvPass>(&pass);
  return conv != nullptr && conv->groups == conv->x_channels && conv->groups > 1;
}
// Few channels a group in 16 bits, for which channels last has faster kernels.
bool is_narrow(const Pass& pass) {
  const auto* conv = std::get_if<ConvPass>(&pass);
  return conv != nullptr && conv->groups > 1 && size_of(conv->x.dtype) == 2 && !is_depthwise(pass) &&
         conv->x_channels_per_group() <= kFewChannels && conv->y_channels_per_group() <= kFewChannels;
}
// Not dense, not of one layout, or dense in one that may be slower than another.
bool is_mixed(const Pass& pass) {
  const bool planes = in_layout(pass, Layout::kPlanes).copies.empty(),
             last = in_layout(pass, Layout::kChannelsLast).copies.empty();
  return planes ? is_narrow(pass) && !last : is_depthwise(pass) || !last;
}

// The implementation of the copies, and what all of it costs.
struct Found {
  Copied copied;
  const Candidate* candidate = nullptr;
};
std::optional<Found> find(const Pass& pass, const Machine& machine) {
  std::optional<Found> found;
  double least = std::numeric_limits<double>::infinity();
  for (Layout layout : {Layout::kPlanes, Layout::kChannelsLast, Layout::kFilled}) {
    if (layout == Layout::kFilled ? !can_fill(pass) : !is_mixed(pass)) continue;
    Copied copied = in_layout(pass, layout);
    if (copied.copies.empty()) continue;
    double bytes = 0;
    for (const Copy& copy : copied.copies) bytes += static_cast<double>(copy.bytes());
    Times times(pass, machine);
    times.add_copy(bytes);
    const auto [candidate, microseconds] = cheapest(candidates(), copied.pass, machine, {&dense_copies()});
    if (times.microseconds() + microseconds >= least) continue;
    least = times.microseconds() + microseconds;
    found = Found{std::move(copied), candidate};
  }
  return found;
}

kernels::cuda::Tensor tensor_of(const PassTensor& tensor, void* data) {
  kernels::cuda::Tensor t{data, tensor.dtype, {}};
  std::copy(tensor.strides.begin(), tensor.strides.end(), t.strides);
  return t;
}
// Rows of channels, filled up; of weights, whose outermost axis is filled up, too, some rows stay zero.
void fill(const Copy& copy, void* given, void* dense, Stream stream) {
  using kernels::cuda::RowType;
  if (copy.sizes[0] != copy.taken[0]) kernels::cuda::clear_bytes(dense, copy.bytes(), stream);
  const auto [n, c, d, h, w] = copy.taken;
  const kernels::cuda::Rows rows{n, 1, c, {d, h, w}, tensor_of(copy.given, given), OperandRounding::kNone};
  kernels::cuda::make_rows(rows, copy.given.dtype == DType::kF16 ? RowType::kF16 : RowType::kBF16, dense,
                           stream);
}
void move(const Copy& copy, void* given, void* dense, runtime::ExecutionContext& context) {
  if (copy.layout == Layout::kFilled && !copy.is_result) return fill(copy, given, dense, stream_of(context));
  int64_t sizes[5];
  std::copy(copy.taken.begin(), copy.taken.end(), sizes);
  const auto caller = tensor_of(copy.given, given), mine = tensor_of(copy.dense, dense);
  copy.is_result ? kernels::cuda::relayout(sizes, mine, caller, stream_of(context))
                 : kernels::cuda::relayout(sizes, caller, mine, stream_of(context));
}
const char* name_of(Layout layout) {
  return layout == Layout::kPlanes         ? "in planes"
         : layout == Layout::kChannelsLast ? "channels last"
                                           : "channels last, filled up to multiples of 8";
}

class DenseConversion final : public Conversion {
 public:
  explicit DenseConversion(const Copy& copy)
      : Conversion(fmt::format("{} {}", name_of(copy.given.operand), name_of(copy.layout)), copy.bytes()),
        copy_(copy) {}
  void run(const Bindings& bindings, std::byte* target, runtime::ExecutionContext& context) const override {
    move(copy_, bindings[copy_.given.operand], target, context);
  }

 private:
  Copy copy_;
};

class CopiesStep final : public Step {
 public:
  CopiesStep(Found found, std::unique_ptr<const Step> inner)
      : layout_(found.copied.layout),
        copies_(std::move(found.copied.copies)),
        name_(found.candidate->name()),
        inner_(std::move(inner)) {
    for (const Copy& copy : copies_)
      if (!copy.is_result) conversions_.push_back(std::make_unique<DenseConversion>(copy));
  }
  Conversions conversions() const override { return conversions_; }
  size_t workspace_bytes() const override {
    size_t bytes = inner_->workspace_bytes();
    for (const Copy& copy : copies_) bytes += copy.bytes();
    return bytes;
  }
  std::string describe() const override {
    std::string text = "copies of";
    for (const Copy& copy : copies_) text += fmt::format(" {},", name_of(copy.given.operand));
    return fmt::format("{} {}; {}: {}", text, name_of(layout_), name_, inner_->describe());
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    Bindings inner = bindings;
    for (const Copy& copy : copies_) {
      inner.set(copy.given.operand, workspace);
      workspace += copy.bytes();
    }
    run_converted(*inner_, 0, inner, workspace, context);
    if (const Copy& last = copies_.back(); last.is_result)
      move(last, bindings[last.given.operand], inner[last.given.operand], context);
  }

 private:
  Layout layout_;
  std::vector<Copy> copies_;
  std::vector<std::unique_ptr<const Conversion>> conversions_;
  const char* name_;
  std::unique_ptr<const Step> inner_;
};

class CopiesCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.dense_copies"; }
  Support supports(const Pass& pass, const Machine& /*machine*/) const override {
    const bool fills = can_fill(pass);
    if (!fills && !is_mixed(pass)) return Support::no("operands are dense and of one layout");
    for (const Layout layout : {Layout::kPlanes, Layout::kChannelsLast, Layout::kFilled}) {
      if (layout == Layout::kFilled && !fills) continue;
      for (const Copy& copy : in_layout(pass, layout).copies)
        if (!fits_31_bits(copy.sizes)) return Support::no("needs 1 to 2^31 - 1 elements");
    }
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
    return std::make_unique<CopiesStep>(std::move(*found), std::move(inner));
  }
};

}  // namespace

const Candidate& dense_copies() {
  static const CopiesCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda
