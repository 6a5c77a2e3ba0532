// SPDX-License-Identifier: Apache-2.0
// clang-format off
//   x'[n, (i, t), p] = x[n, i, position(p, t)]       im2col: every tap of every x channel is a channel
//   forward      y = x' ⋆ w      grad_weight  w = x' ⋆ y      grad_input   x' = y ⋆ w, and back (col2im)
// clang-format on
// What is left is a convolution of one tap, which the cheapest implementation for it computes; x' lies in the
// workspace, in the type of x. For windows that lie inside x, so that no tap meets padding; grad_input also
// wants windows that do not overlap, so that every pixel of x belongs to one tap of one window at most, and
// fills the pixels between them with zeros. Patches (kernel = stride) and strided kernels of one tap are
// such, and kernels as large as x, of which there is one window.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/checked.h"
#include "engines/cost.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/strided_copy.h"
#include "engines/cpu/task_slots.h"
#include "engines/registry.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;
using problem::Window;

constexpr int64_t kMostExtraBytes = 4 << 20;  // x' is no larger than the largest operand and these
constexpr int64_t kTaskBytes = 1 << 16;       // of a copy: about 5 us

// An x channel of a group or a tap along D, H, W (0 to 3), as the weight lies.
struct Nest {
  std::array<int, 4> order{};  // the longest stride first
  int64_t stride = 1;          // of the innermost
};

int64_t weight_size(const ConvPass& p, int axis) {
  return axis == 0 ? p.x_channels_per_group() : p.axes[static_cast<size_t>(axis - 1)].kernel;
}

// How x channels and taps follow each other in the weight, or nothing where they are not one dense axis.
std::optional<Nest> nest_of(const ConvPass& p) {
  Nest nest{.order = {0, 1, 2, 3}};
  const auto stride = [&](int axis) { return p.w.strides[static_cast<size_t>(axis + 1)]; };
  std::stable_sort(nest.order.begin(), nest.order.end(), [&](int a, int b) {
    // Axes of one place lie anywhere: outside.
    const bool a_one = weight_size(p, a) == 1, b_one = weight_size(p, b) == 1;
    return a_one != b_one ? a_one : !a_one && stride(a) > stride(b);
  });
  Checked expected = 0;
  for (auto axis = nest.order.rbegin(); axis != nest.order.rend(); ++axis) {
    if (weight_size(p, *axis) == 1) continue;
    if (expected.get() == 0) expected = nest.stride = std::max<int64_t>(stride(*axis), 1);
    if (stride(*axis) != expected.get()) return std::nullopt;
    expected = expected * weight_size(p, *axis);
  }
  return nest;
}

constexpr int64_t kMostElements = int64_t{1} << 40;  // of an operand, and of x'
// No more than that many: sizes may be anything.
int64_t elements(Checked count, const ConvPass& p, int64_t Window::*size) {
  for (const Window& w : p.axes) count = count * w.*size;
  return std::min(count.get().value_or(kMostElements + 1), kMostElements + 1);
}
int64_t bytes(const PassTensor& tensor, int64_t count) {
  return count * static_cast<int64_t>(size_of(tensor.dtype));
}

// The pass of one tap over x', and how x and x' lie to each other.
struct Unfolded {
  ConvPass pass;
  std::vector<CopyAxis> axes;  // from x' to x
  int64_t offset = 0;          // elements, of the first window in x
  int64_t elements = 0;        // of x'
  bool covers = true;          // every place of x lies in a window
};

Unfolded unfold(const ConvPass& p) {
  const Nest nest = *nest_of(p);
  Unfolded u;
  u.pass = p;
  int64_t channels = p.x_channels_per_group();  // of x', a group
  for (const Window& w : p.axes) channels *= w.kernel;
  // Positions are innermost where nothing else lies side by side: planes, and one tap along W.
  const bool planes = p.axes[2].kernel == 1 && p.x.strides[1] != 1;
  std::array<int64_t, 3> steps{};  // of x', from position to position
  int64_t positions = 1;
  for (size_t axis = 3; axis-- > 0;) {
    steps[axis] = positions * (planes ? 1 : channels * p.groups);
    positions *= p.axes[axis].y;
  }
  const int64_t channel_step = planes ? positions : 1, image = positions * channels * p.groups;
  u.elements = p.batch * image;

  const auto position_axis = [&](size_t axis) {
    const Window& w = p.axes[axis];
    if (w.y > 1) u.axes.push_back({w.y, steps[axis], w.stride * p.x.strides[axis + 2]});
  };
  // x channels and taps, from the inside of x' out.
  std::vector<CopyAxis> channel_axes;
  int64_t step = channel_step;
  for (auto axis = nest.order.rbegin(); axis != nest.order.rend(); ++axis) {
    const int64_t size = weight_size(p, *axis);
    if (size == 1) continue;
    const int64_t dilation = *axis == 0 ? 1 : p.axes[static_cast<size_t>(*axis - 1)].dilation;
    channel_axes.push_back({size, step, dilation * p.x.strides[static_cast<size_t>(*axis + 1)]});
    step *= size;
  }
  channel_axes.push_back({p.groups, channels * channel_step, p.x_channels_per_group() * p.x.strides[1]});
  u.axes.push_back({p.batch, image, p.x.strides[0]});
  if (planes) {
    u.axes.insert(u.axes.end(), channel_axes.rbegin(), channel_axes.rend());
    for (size_t axis = 0; axis < 3; ++axis) position_axis(axis);
  } else {
    // What lies side by side is moved at once; then comes a row of positions, so that what lies between them
    // in x' is still in the caches when the next channel's turn comes.
    CopyAxis run = channel_axes.front();
    size_t first = 1;
    for (; first < channel_axes.size() && channel_axes[first].to == run.size * run.to; ++first)
      run.size *= channel_axes[first].size;
    position_axis(0);
    position_axis(1);
    u.axes.insert(u.axes.end(), channel_axes.rbegin(), channel_axes.rend() - static_cast<ptrdiff_t>(first));
    position_axis(2);
    u.axes.push_back(run);
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    const Window& w = p.axes[axis];
    u.offset -= w.pad_lo * p.x.strides[axis + 2];
    u.covers &= w.y * w.kernel == w.x;
    u.pass.axes[axis] = {.x = w.y, .y = w.y};
  }
  u.pass.x_channels = channels * p.groups;
  u.pass.x.strides = {image, channel_step, steps[0], steps[1], steps[2]};
  u.pass.w.strides = {p.w.strides[0], nest.stride, 0, 0, 0};
  return u;
}

std::vector<CopyAxis> turned(std::vector<CopyAxis> axes) {
  for (CopyAxis& axis : axes) std::swap(axis.from, axis.to);
  return axes;
}

// Every place of x, as it lies.
std::vector<CopyAxis> places_of(const ConvPass& p) {
  const auto& s = p.x.strides;
  return as_they_lie({{p.batch, 0, s[0]},
                      {p.x_channels, 0, s[1]},
                      {p.axes[0].x, 0, s[2]},
                      {p.axes[1].x, 0, s[3]},
                      {p.axes[2].x, 0, s[4]}});
}

class Im2colStep final : public Step {
 public:
  Im2colStep(const ConvPass& pass, const Machine& machine)
      : kind_(pass.kind),
        x_(pass.x),
        unfolded_(unfold(pass)),
        copy_(kind_ == ConvPassKind::kGradInput ? unfolded_.axes : turned(unfolded_.axes), size_of(x_.dtype)),
        places_(places_of(pass), size_of(x_.dtype)),
        inner_(cheapest(candidates(runtime::DeviceKind::kCpu), unfolded_.pass, machine).candidate),
        step_(inner_->make_step(unfolded_.pass, machine)),
        copy_bytes_(part_bytes<std::byte>(bytes(x_, unfolded_.elements))) {}

  size_t workspace_bytes() const override { return copy_bytes_ + step_->workspace_bytes(); }
  std::string describe() const override {
    const auto& axes = unfolded_.pass.axes;
    return fmt::format("x as {} channels of {}x{}x{}, runs of {}; {}: {}", unfolded_.pass.x_channels,
                       axes[0].y, axes[1].y, axes[2].y, copy_.run(), inner_->name(), step_->describe());
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* const x = static_cast<std::byte*>(bindings[x_.operand]);
    std::byte* const first = x + bytes(x_, unfolded_.offset);
    const auto in_parallel = [&](const StridedCopy& copy, const auto& body) {
      const int64_t row = copy.row_elements() * static_cast<int64_t>(size_of(x_.dtype));
      context.pool->parallel_for(copy.rows(), std::max<int64_t>(1, kTaskBytes / row), body);
    };
    Bindings inner = bindings;
    inner.set(x_.operand, workspace);
    if (kind_ != ConvPassKind::kGradInput)
      in_parallel(copy_, [&](int64_t begin, int64_t end) { copy_.copy(first, workspace, begin, end); });
    step_->run(inner, workspace + copy_bytes_, context);
    if (kind_ != ConvPassKind::kGradInput) return;
    if (!unfolded_.covers)
      in_parallel(places_, [&](int64_t begin, int64_t end) { places_.clear(x, begin, end); });
    in_parallel(copy_, [&](int64_t begin, int64_t end) { copy_.copy(workspace, first, begin, end); });
  }

 private:
  ConvPassKind kind_;
  PassTensor x_;
  Unfolded unfolded_;
  StridedCopy copy_, places_;
  const Candidate* inner_;
  std::unique_ptr<const Step> step_;
  size_t copy_bytes_;
};

class Im2colCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.im2col"; }

  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* p = std::get_if<ConvPass>(&pass);
    if (p == nullptr) return Support::no("computes convolutions only");
    bool one_tap = true, overlap = false;
    for (const Window& w : p->axes) {
      if (w.x <= 0 || w.y <= 0 || w.kernel <= 0) return Support::no("there is nothing to add");
      if (-w.pad_lo < 0 || position(w, w.y - 1, w.kernel - 1) >= w.x)
        return Support::no("a window reaches beyond x");
      overlap |= w.y > 1 && (w.kernel - 1) * w.dilation >= w.stride;
      one_tap &= w.kernel == 1 && (w.stride == 1 || w.y == 1);
    }
    if (one_tap) return Support::no("one tap at every place: nothing to unfold");
    if (overlap && p->kind == ConvPassKind::kGradInput) return Support::no("windows overlap");
    if (p->bias && p->kind == ConvPassKind::kGradInput)
      return Support::no("a bias belongs to the places between the windows, too");
    if (p->groups > 1 && p->x_channels_per_group() == 1 && p->y_channels_per_group() == 1)
      return Support::no("one channel a group");
    if (!nest_of(*p))
      return Support::no("x channels and taps of the weight do not follow each other in memory");
    if (p->batch == 0 || p->x_channels == 0 || p->y_channels == 0)
      return Support::no("there is nothing to add");
    Checked copied = Checked(p->batch) * p->x_channels;
    for (const Window& w : p->axes) copied = copied * w.kernel;
    const int64_t unfolded = elements(copied, *p, &Window::y);
    const int64_t x = elements(Checked(p->batch) * p->x_channels, *p, &Window::x);
    const int64_t y = elements(Checked(p->batch) * p->y_channels, *p, &Window::y);
    const int64_t w = elements(Checked(p->y_channels) * p->x_channels_per_group(), *p, &Window::kernel);
    if (std::max({unfolded, x, y, w}) > kMostElements)
      return Support::no("an operand has more than 2^40 elements");
    if (bytes(p->x, unfolded) > std::max({bytes(p->x, x), bytes(p->y, y), bytes(p->w, w)}) + kMostExtraBytes)
      return Support::no("x' would be larger than the largest operand and 4 MB");
    if (const auto reason = unfit_size(unfold(*p).pass)) return Support::no(*reason);
    return Support::yes();
  }

  // Of the copies alone.
  Effort effort(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto& p = std::get<ConvPass>(pass);
    const Unfolded u = unfold(p);
    const bool gather = p.kind == ConvPassKind::kGradInput;
    const StridedCopy copy(gather ? u.axes : turned(u.axes), size_of(p.x.dtype));
    const bool clears = gather && !u.covers;
    const int64_t cleared = clears ? elements(Checked(p.batch) * p.x_channels, p, &Window::x) : 0;
    return {.operations = 0,
            .bytes = static_cast<double>(bytes(p.x, 2 * u.elements + cleared)),
            .launches = clears ? 2.0 : 1.0,
            .calls = static_cast<double>(u.elements) / static_cast<double>(copy.run())};
  }
  std::optional<Rest> rest(const problem::Pass& pass, const Machine& machine) const override {
    const problem::Pass left = unfold(std::get<ConvPass>(pass)).pass;
    return Rest{cheapest(candidates(runtime::DeviceKind::kCpu), left, machine).candidate, left};
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return std::make_unique<Im2colStep>(std::get<ConvPass>(pass), machine);
  }
};

}  // namespace

const Candidate& im2col() {
  static const Im2colCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu
