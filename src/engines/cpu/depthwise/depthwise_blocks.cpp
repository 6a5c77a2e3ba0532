// SPDX-License-Identifier: Apache-2.0
// Cutting planes into blocks, and rows into classes.
#include "engines/cpu/depthwise/depthwise_blocks.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/depthwise/depthwise_tasks.h"

namespace retrograd::engines::cpu {
namespace {

constexpr int64_t kMostTasks = 128;
constexpr int64_t kSetups = 8;  // the set-up is at most an eighth of a task, where there are images enough
constexpr int64_t kPartFloats = 32768;                  // 128 KiB
constexpr int64_t kMostPlaneFloats = int64_t{1} << 18;  // of a plane that is converted
constexpr int64_t kLeastPlanes = 8;

}  // namespace

std::array<int64_t, 3> sizes_of(const problem::ConvPass& pass, bool of_x) {
  std::array<int64_t, 3> sizes;
  for (size_t axis = 0; axis < 3; ++axis) sizes[axis] = of_x ? pass.axes[axis].x : pass.axes[axis].y;
  return sizes;
}

std::optional<Reason> unfit_for_planes(const problem::ConvPass& pass) {
  if (pass.x_channels != pass.groups || pass.y_channels != pass.groups)
    return "a group has more than one channel";
  if (pass.batch * pass.groups < kLeastPlanes) return "there are too few planes";
  if (pass.x.strides[4] != 1 || pass.y.strides[4] != 1) return "places along W lie apart";
  const BlockTensor x(pass.x, pass.rounding, sizes_of(pass, true));
  const BlockTensor y(pass.y, pass.rounding, sizes_of(pass, false));
  if (!(x.in_place() && y.in_place()) && std::max(x.plane_floats(), y.plane_floats()) > kMostPlaneFloats)
    return "a plane to convert has more than 2^18 places";
  return std::nullopt;
}

int64_t ImageCut::channel_blocks() const { return ceil_div(channels, channels_per_task); }
int64_t ImageCut::image_blocks() const { return ceil_div(batch, images_per_task); }

ImageBlock ImageCut::task(int64_t channel_block, int64_t image_block) const {
  const int64_t image = image_block * images_per_task, channel = channel_block * channels_per_task;
  return {image, std::min(images_per_task, batch - image), channel,
          std::min(channels_per_task, channels - channel)};
}

ImageCut cut_into_image_blocks(int64_t batch, int64_t channels, const PlaneWork& work) {
  ImageCut cut{.batch = batch, .channels = channels};
  const int64_t vectors = std::max<int64_t>(work.vectors, 1), floats = std::max<int64_t>(work.floats, 1);
  const double all =
      static_cast<double>(batch) * static_cast<double>(channels) * static_cast<double>(vectors);
  const int64_t planes = std::max<int64_t>(vectors_per_task(all) / vectors, 1);
  const int64_t most_kept = std::max<int64_t>(kKeptFloats / std::max<int64_t>(work.kept, 1), 1);
  const int64_t run = std::min({ceil_div(kRunFloats, floats), most_kept, planes, channels});
  const int64_t images =
      std::min(std::max(ceil_div(planes, run), ceil_div(kSetups * work.setup, vectors)), batch);
  cut.channels_per_task = std::min(std::max(run, std::min(ceil_div(planes, images), most_kept)), channels);
  cut.channels_per_task = ceil_div(channels, cut.channel_blocks());
  // Not more tasks than many cores want: each adds sums, or packs weights.
  cut.images_per_task = std::max(images, ceil_div(batch * cut.channel_blocks(), kMostTasks));
  cut.images_per_task = ceil_div(batch, cut.image_blocks());
  cut.channels_per_part = std::clamp<int64_t>(kPartFloats / floats, 1, cut.channels_per_task);
  return cut;
}

BlockTensor::BlockTensor(const problem::PassTensor& tensor, OperandRounding rounding,
                         const std::array<int64_t, 3>& sizes)
    : tensor_(tensor),
      rounding_(rounding),
      sizes_(sizes),
      in_place_(is_plain(tensor, rounding) && (tensor.strides[4] == 1 || sizes[2] == 1)) {}

template <class Body>
void BlockTensor::for_each_run(const ImageBlock& block, const Body& body) const {
  const auto& s = tensor_.strides;
  const std::array<int64_t, 5> counts{block.images, block.channels, sizes_[0], sizes_[1], sizes_[2]};
  // Axes that follow each other in memory are one.
  size_t axis = 4;
  int64_t run = sizes_[2];
  while (axis > 0 && (counts[axis - 1] == 1 || s[axis - 1] == run * s[4])) run *= counts[--axis];
  std::array<int64_t, 4> outer{1, 1, 1, 1};
  for (size_t i = 0; i < axis; ++i) outer[i] = counts[i];
  int64_t to = 0;
  for (int64_t n = 0; n < outer[0]; ++n)
    for (int64_t c = 0; c < outer[1]; ++c)
      for (int64_t d = 0; d < outer[2]; ++d)
        for (int64_t h = 0; h < outer[3]; ++h, to += run)
          body((block.image + n) * s[0] + (block.channel + c) * s[1] + d * s[2] + h * s[3], to, run);
}

PlaneView BlockTensor::view(void* address, const ImageBlock& block, float* buffer) const {
  const auto& s = tensor_.strides;
  if (in_place_)
    return {static_cast<float*>(address) + block.image * s[0] + block.channel * s[1],
            {s[0], s[1], s[2], s[3]}};
  const int64_t area = sizes_[1] * sizes_[2], plane = plane_floats();
  return {buffer, {block.channels * plane, plane, area, sizes_[2]}};
}

void BlockTensor::load(const void* address, const ImageBlock& block, float* buffer) const {
  if (in_place_) return;
  const auto bytes = static_cast<int64_t>(size_of(tensor_.dtype));
  const auto* base = static_cast<const std::byte*>(address);
  for_each_run(block, [&](int64_t from, int64_t to, int64_t count) {
    load_row(tensor_.dtype, rounding_, base + from * bytes, tensor_.strides[4], count, buffer + to);
  });
}

void BlockTensor::store(void* address, const ImageBlock& block, const float* buffer) const {
  if (in_place_) return;
  const auto bytes = static_cast<int64_t>(size_of(tensor_.dtype));
  auto* base = static_cast<std::byte*>(address);
  for_each_run(block, [&](int64_t to, int64_t from, int64_t count) {
    store_row(tensor_.dtype, base + to * bytes, tensor_.strides[4], buffer + from, 1, count);
  });
}

bool make_row_phase(const AxisPhase& phase, RowPhase& result) {
  result = {.first = phase.first, .result_step = phase.step, .step = 1, .taps = {}, .classes = {}};
  if (phase.taps.empty()) {
    result.classes.push_back({.position = 0, .positions = phase.count});
    return true;
  }
  const auto& taps = phase.taps;
  const bool falling = taps.front().offset > taps.back().offset;
  if (taps.size() > 1) result.step = std::abs(taps[1].offset - taps[0].offset);
  for (size_t i = 0; i < taps.size(); ++i) {
    const PhaseTap& tap = taps[falling ? taps.size() - 1 - i : i];
    if (tap.offset != phase.lowest_offset() + static_cast<int64_t>(i) * result.step) return false;
    result.taps.push_back(tap.tap);
  }
  for (int64_t c = 0; c < std::min(result.step, phase.count); ++c) {
    const int64_t base = c + phase.lowest_offset();
    const int64_t first = floor_div(base, result.step);
    const int64_t source = base - first * result.step;
    result.classes.push_back(
        {.position = c,
         .positions = ceil_div(phase.count - c, result.step),
         .source = source,
         .source_rows = ceil_div(std::max<int64_t>(phase.source_size - source, 0), result.step),
         .first = first});
  }
  return true;
}

}  // namespace retrograd::engines::cpu
