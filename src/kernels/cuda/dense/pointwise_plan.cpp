// SPDX-License-Identifier: Apache-2.0
// Boxes of planes and weights, and the cheapest cut: the times of a step are measured ones, the rest is
// counting. An H200 stands for every GPU, so that the order of sums is the problem's alone.
#include <algorithm>
#include <array>

#include "kernels/cuda/counts.h"
#include "kernels/cuda/dense/pointwise.h"

namespace retrograd::kernels::cuda {
namespace {

constexpr int64_t kProcessors = 132, kMostBlocks = int64_t{1} << 30, kMostParts = 256, kFewestSteps = 4;
constexpr int64_t kVector = 8, kMostStride = int64_t{1} << 31;
constexpr double kMemory = 3.2e6;  // bytes a microsecond
constexpr double kPart = 0.76e-6, kWeight = 0.6e-6,
                 kLaunch = 2;  // microseconds a sum, a weight, a kernel

struct CutShape {
  PointwiseCut cut;
  const char* name;
  int64_t rows, columns;
  double step, ends, between;  // microseconds: of a step, of a block's beginning and end, from tile to tile
  bool weights, planes;        // of which results
};
// Of blocks that share a multiprocessor, as if they came one after the other.
constexpr std::array<CutShape, 5> kCuts = {
    {{PointwiseCut::k64x256, "64 x 256", 64, 256, 0.75, 1.2, 1, false, true},
     {PointwiseCut::k128x128, "128 x 128", 128, 128, 0.6, 1.2, 1, true, true},
     {PointwiseCut::k128x256, "128 x 256", 128, 256, 0.93, 4.5, 2, true, true},
     {PointwiseCut::k192x128, "192 x 128", 192, 128, 0.78, 3.5, 1.6, false, true},
     {PointwiseCut::k192x192, "192 x 192", 192, 192, 0.95, 4.5, 2, true, false}}};

// Pieces pass registers, whose number limits how many bytes are on their way.
constexpr CutShape kPieces = {PointwiseCut::k128x128, "128 x 128", 128, 128, 1.3, 4, 1.5, true, true};

int64_t places_of(const Conv& conv) { return conv.axes[0].x * conv.axes[1].x * conv.axes[2].x; }

struct PlaneStrides {
  int64_t image, channel;
};
// Those that lead nowhere are what they would be.
PlaneStrides strides_of_planes(const Tensor& t, int64_t batch, int64_t channels, int64_t places) {
  const int64_t channel = channels > 1 ? t.strides[1] : ceil_of(places, kVector) * kVector;
  return {batch > 1 ? t.strides[0] : channel * channels, channel};
}

// Rows in boxes, as far as the pass reads or writes them.
bool in_boxes(const Conv& conv, Result result) {
  const int64_t places = places_of(conv);
  return has_boxes(conv.x, conv.batch, conv.x_channels * conv.groups, places) &&
         has_boxes(conv.y, conv.batch, conv.y_channels * conv.groups, places) &&
         (result == Result::kGradWeight || has_weight_boxes(conv));
}

double estimate(const PointwisePlan& plan, const CutShape& cut, double bytes) {
  const bool weights = plan.walk.part_steps > 0;
  const double steps = weights ? plan.walk.part_steps : ceil_of(plan.walk.terms, kPointwiseTerms);
  const auto tiles = static_cast<double>(ceil_of(plan.blocks, kProcessors));  // of a multiprocessor
  const double time =
      3 + std::max(tiles * steps * cut.step + cut.ends + (tiles - 1) * cut.between, bytes / kMemory);
  if (!weights || plan.results == WeightResults::kInPlace) return time;
  const double sums = static_cast<double>(plan.walk.groups) * plan.walk.rows * plan.walk.filled;
  if (plan.results == WeightResults::kFilter) return time + sums * 4 / kMemory + kLaunch;
  return time + sums * (kPart * static_cast<double>(plan.parts) + kWeight) + kLaunch;
}

}  // namespace

const char* name_of(PointwiseCut cut) { return kCuts[static_cast<size_t>(cut)].name; }

bool has_pieces(const Tensor& tensor, int64_t batch, int64_t channels, int64_t places) {
  for (const int64_t stride : {tensor.strides[0], tensor.strides[1]})
    if (stride < 0 || stride >= kMostStride) return false;
  const PlaneStrides strides = strides_of_planes(tensor, batch, channels, places);
  return strides.channel >= places && strides.image > 0;
}

bool has_boxes(const Tensor& tensor, int64_t batch, int64_t channels, int64_t places) {
  const PlaneStrides strides = strides_of_planes(tensor, batch, channels, places);
  return has_pieces(tensor, batch, channels, places) && places % kVector == 0 &&
         strides.channel % kVector == 0 && strides.image % kVector == 0;
}

bool has_weight_pieces(const Conv& conv) {
  const int64_t* s = conv.w.strides;
  return (conv.x_channels == 1 || s[1] == 1) && s[0] >= conv.x_channels && s[0] < kMostStride;
}

bool has_weight_boxes(const Conv& conv) {
  return has_weight_pieces(conv) && conv.w.strides[0] % kVector == 0;
}

PieceRows plane_pieces(const Conv& conv, bool is_x) {
  const Tensor& tensor = is_x ? conv.x : conv.y;
  const int64_t channels = is_x ? conv.x_channels : conv.y_channels, places = places_of(conv);
  const PlaneStrides s = strides_of_planes(tensor, conv.batch, channels * conv.groups, places);
  const auto* const first = static_cast<const uint16_t*>(tensor.data);
  const int64_t last = (conv.batch - 1) * s.image + (channels * conv.groups - 1) * s.channel;
  const int64_t pieces = ceil_of(places, kPiece);
  return {first,
          first + last + places,
          s.channel,
          s.channel * channels,
          s.image,
          static_cast<int>(channels),
          static_cast<int>(places),
          FastDiv(pieces),
          static_cast<uint32_t>(pieces * conv.batch)};
}

PieceRows weight_pieces(const Conv& conv) {
  const auto* const first = static_cast<const uint16_t*>(conv.w.data);
  const int64_t row = conv.w.strides[0], pieces = ceil_of(conv.x_channels, kPiece);
  return {first,
          first + (conv.groups * conv.y_channels - 1) * row + conv.x_channels,
          row,
          row * conv.y_channels,
          0,
          static_cast<int>(conv.y_channels),
          static_cast<int>(conv.x_channels),
          FastDiv(pieces),
          static_cast<uint32_t>(pieces)};
}

BoxMap plane_boxes(const Conv& conv, bool is_x, uint32_t rows) {
  const int64_t channels = is_x ? conv.x_channels : conv.y_channels, places = places_of(conv);
  const PlaneStrides s =
      strides_of_planes(is_x ? conv.x : conv.y, conv.batch, channels * conv.groups, places);
  const auto size = [](int64_t value) { return static_cast<uint64_t>(value); };
  return {4,
          {size(places), size(channels), size(conv.groups), size(conv.batch)},
          {size(s.channel * 2), size(s.channel * channels * 2), size(s.image * 2)},
          {kPointwiseTerms, rows, 1, 1}};
}

BoxMap weight_boxes(const Conv& conv, uint32_t rows) {
  const auto size = [](int64_t value) { return static_cast<uint64_t>(value); };
  const uint64_t row = size(conv.w.strides[0] * 2), group = row * size(conv.y_channels);
  return {4,
          {size(conv.x_channels), size(conv.y_channels), size(conv.groups), 1},
          {row, group, group * size(conv.groups)},
          {kPointwiseTerms, rows, 1, 1}};
}

bool plan_pointwise(const Conv& conv, Result result, DType rows, PointwisePlan* plan) {
  const bool weights = result == Result::kGradWeight, forward = result == Result::kForward;
  const int64_t places = places_of(conv);
  const double operands =
      static_cast<double>(conv.batch * places * conv.groups) *
          static_cast<double>(conv.x_channels + conv.y_channels) * 2 +
      static_cast<double>(conv.groups * conv.x_channels) * static_cast<double>(conv.y_channels) * 2;
  const bool pieces = !in_boxes(conv, result);
  const int64_t row_pieces = ceil_of(places, kPiece);
  bool found = false;
  for (const CutShape& shape : kCuts) {
    if (!(weights ? shape.weights : shape.planes) || (pieces && shape.cut != kPieces.cut)) continue;
    const CutShape& cut = pieces ? kPieces : shape;
    PointwisePlan tried{};
    tried.pieces = pieces;
    PointwiseWalk& w = tried.walk;
    tried.cut = cut.cut;
    w.rows = static_cast<int>(weights || forward ? conv.y_channels : conv.x_channels);
    w.columns = static_cast<int>(weights ? conv.x_channels : places);
    w.terms = static_cast<int>(weights ? places : forward ? conv.x_channels : conv.y_channels);
    w.groups = static_cast<int>(conv.groups);
    w.images = pieces ? 1 : static_cast<int>(conv.batch);
    const int64_t joined = row_pieces * conv.batch * kPiece;  // places of all images, filled up
    if (joined > kMostBlocks) continue;
    if (pieces) (weights ? w.terms : w.columns) = static_cast<int>(joined);
    w.across_m = FastDiv(ceil_of(w.rows, cut.rows));
    w.across_n = FastDiv(ceil_of(w.columns, cut.columns));
    const int64_t tiles = int64_t{w.across_m.divisor} * w.across_n.divisor * w.groups;
    if (!weights) {
      const Tensor& to = forward ? conv.y : conv.x;
      const PlaneStrides strides = strides_of_planes(to, conv.batch, int64_t{w.rows} * w.groups, places);
      w.row_step = strides.channel;
      w.image_step = strides.image;
      w.outer = FastDiv(w.images);
      tried.parts = 1;
      tried.blocks = tiles * w.images;
      if (tried.blocks > kMostBlocks) continue;
      w.tiles = static_cast<uint32_t>(tried.blocks);
      tried.microseconds = estimate(tried, cut, operands);
      if (!found || tried.microseconds < plan->microseconds) *plan = tried;
      found = true;
      continue;
    }
    const int64_t image_steps = ceil_of(w.terms, kPointwiseTerms), steps = w.images * image_steps;
    const WeightResults whole = conv.groups == 1 ? whole_results(conv, rows) : WeightResults::kParts;
    w.image_steps = FastDiv(image_steps);
    w.filled = ceil_of(w.columns, kVector) * static_cast<int>(kVector);
    const int64_t most =
        std::clamp(std::min(steps / kFewestSteps, 3 * kProcessors / tiles), int64_t{1}, kMostParts);
    if (tiles * most > kMostBlocks || steps > kMostBlocks) continue;
    for (int64_t parts = 1; parts <= most; ++parts) {
      w.outer = FastDiv(parts);
      w.part_steps = static_cast<uint32_t>(ceil_of(steps, parts));
      tried.parts = parts;
      tried.blocks = tiles * parts;
      w.tiles = static_cast<uint32_t>(tried.blocks);
      tried.results = parts > 1 ? WeightResults::kParts : whole;
      w.row_step = tried.results == WeightResults::kParts ? w.filled : strides_of(conv, tried.results)[0];
      tried.microseconds = estimate(tried, cut, operands);
      if (found && tried.microseconds >= plan->microseconds) continue;
      found = true;
      *plan = tried;
    }
  }
  return found;
}

}  // namespace retrograd::kernels::cuda
