// SPDX-License-Identifier: Apache-2.0
// The predicted time of each form, and the fastest of them.
#include "engines/cuda/dense/gather_way.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "engines/cuda/dense/patches.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/wgmma_gather.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::ProductMath;
using kernels::cuda::RowType;

constexpr double kStep = 0.4;     // microseconds of a tile's step, however few tiles there are
constexpr double kLaunch = 2.0;   // of one more
constexpr double kCopied = 3e6;   // bytes a microsecond
constexpr int64_t kEndSteps = 3;  // that take as long as a tile's beginning and end
constexpr double kStored = 1.2e-6, kStoredAlone = 4e-6;  // of a result, in vectors and by itself
constexpr int64_t kMostFolded = 1 << 24, kMostProducts = 64;

bool is_dense(const ConvPass& pass) {
  return is_planes(pass.result(), result_sizes(pass)) || is_channels_last(pass.result(), result_sizes(pass));
}
// Steps of 128 bytes: of all taps together, and where each begins with a step of its own.
int64_t product_taps(const ProductAxes& axes) {
  int64_t taps = 1;
  for (const kernels::cuda::ProductAxis& axis : axes) taps *= axis.taps;
  return taps;
}
int64_t steps_of(const ProductAxes& axes, int64_t chunks) { return ceil_div(product_taps(axes) * chunks, 8); }
int64_t box_steps_of(const ProductAxes& axes, int64_t chunks) {
  return product_taps(axes) * ceil_div(chunks, 8);
}

// Whether f32_gather takes the product.
bool is_for_warpgroups(const ConvPass& pass, const ProductAxes& axes, RowType type, int64_t columns) {
  if (type != RowType::kF32 || pass.groups != 1 || columns <= 32 || pass.result().dtype != DType::kF32 ||
      (pass.bias && pass.bias->dtype != DType::kF32))
    return false;
  kernels::cuda::GatherProduct product{};
  product.conv = shape_of(pass);
  product.forward = is_forward(pass);
  return kernels::cuda::wgmma_gather_takes(product, axes);
}

class GatherPlanner {
 public:
  GatherPlanner(const ConvPass& pass, const RowOperand& source, RowType type, ProductMath math,
                const Machine& machine)
      : pass_(pass), source_(source), machine_(machine), type_(type), math_(math) {
    planes_ = !is_channels_last(pass.result(), result_sizes(pass));
  }

  GatherWay cheapest() const {
    std::vector<GatherWay> ways;
    if (auto way = folded()) ways.push_back(*std::move(way));
    const auto add = [&](GatherWay way) {
      if (const auto other = in_warpgroups(way)) ways.push_back(*other);
      set_tiles(way, columns_of(pass_));
      ways.push_back(std::move(way));
    };
    if (is_few_residues(pass_)) add(residues());
    if (has_patches(pass_, type_)) add(patches());
    const auto time = [](const GatherWay& way) {
      return way.microseconds + kLaunch * (way.launches + (way.copied > 0 ? 1 : 0)) + way.copied / kCopied;
    };
    return *std::min_element(ways.begin(), ways.end(),
                             [&](const GatherWay& a, const GatherWay& b) { return time(a) < time(b); });
  }
  std::optional<GatherWay> folded() const {
    if (!can_fold(pass_)) return std::nullopt;
    GatherWay way;
    way.copied = rows_copied();
    way.products = {*folded_axes(pass_)};
    way.columns = planes_ && are_weights_rows(pass_) ? kernels::cuda::Columns::kFoldedTapsFast
                                                     : kernels::cuda::Columns::kFoldedChannelsFast;
    way.cleared = !folded_covers_x(pass_);
    set_tiles(way, taps_of(pass_) * columns_of(pass_));
    return way;
  }

 private:
  // One sweep over all places takes less time than writing zeros to every other one.
  GatherWay residues() const {
    GatherWay way;
    way.copied = rows_copied();
    way.products = product_axes(pass_);
    way.cleared = is_dense(pass_) && !pass_.bias && std::erase_if(way.products, has_no_tap) > 0;
    return way;
  }
  GatherWay patches() const {
    GatherWay way;
    way.patches = true;
    way.copied = patch_traffic(pass_, type_);
    way.products = {patch_axes(pass_)};
    return way;
  }
  double rows_copied() const { return 2 * static_cast<double>(source_.bytes); }
  // 16 bytes of a source row, those of a tap and a group.
  int64_t chunks_of(const GatherWay& way) const {
    return (way.patches ? patch_row(pass_, type_) : source_.filled) / kernels::cuda::chunk_elements(type_);
  }
  std::optional<GatherWay> in_warpgroups(const GatherWay& in_tiles) const {
    GatherWay way = in_tiles;
    way.warpgroups = true;
    way.launches = static_cast<double>(way.products.size());
    if (!has_warpgroups(machine_)) return std::nullopt;
    for (const ProductAxes& axes : way.products) {
      if (!is_for_warpgroups(pass_, axes, type_, columns_of(pass_))) return std::nullopt;
      way.microseconds +=
          kernels::cuda::f32_gather_tiles(places_of(pass_, axes), columns_of(pass_),
                                          box_steps_of(axes, chunks_of(way)), math_, processors_of(machine_))
              .time;
    }
    return way;
  }
  void set_tiles(GatherWay& way, int64_t columns) const {
    if (way.products.empty()) return;
    int64_t places = 0, steps = 0, most = 0;
    for (const ProductAxes& axes : way.products) {
      places = std::max(places, places_of(pass_, axes));
      steps += steps_of(axes, chunks_of(way));
      most = std::max(most, steps_of(axes, chunks_of(way)));
    }
    const auto count = static_cast<int64_t>(way.products.size());
    way.parts = kernels::cuda::gather_parts(places, columns, pass_.groups * count, most);
    way.launches =
        static_cast<double>(ceil_div(count, kernels::cuda::kMostResidues)) * (way.parts > 1 ? 2 : 1);
    const double terms = static_cast<double>((steps + kEndSteps * count * way.parts) * 8 *
                                             kernels::cuda::chunk_elements(type_)) /
                         static_cast<double>(count * way.parts);
    const int processors = processors_of(machine_);
    const double time =
        kernels::cuda::gather_tiles(places, columns, pass_.groups * count * way.parts, math_, processors)
            .time;
    way.microseconds = std::max(2 * time * terms * processors / (tile_tflops(math_, false, machine_) * 1e6),
                                kStep * static_cast<double>(most) / way.parts);
    kernels::cuda::GatherProduct product{};
    product.conv = shape_of(pass_);
    product.forward = pass_.kind == ConvPassKind::kForward;
    product.columns = way.columns;
    const bool vectors = kernels::cuda::gather_run(product, way.products).length > 1;
    way.microseconds += static_cast<double>(places * columns * pass_.groups * count) *
                        (vectors ? kStored : kStoredAlone) * 132 / processors;
  }

  const ConvPass& pass_;
  const RowOperand& source_;
  const Machine& machine_;
  RowType type_;
  ProductMath math_;
  bool planes_ = false;
};

}  // namespace

// Places that no window reads are cleared, all at once; a bias belongs there, too.
bool can_fold(const ConvPass& pass) {
  return folded_axes(pass) && is_dense(pass) && (!pass.bias || folded_covers_x(pass)) &&
         taps_of(pass) * columns_of(pass) < kMostFolded;
}
bool is_few_residues(const ConvPass& pass) {
  if (pass.kind != ConvPassKind::kGradInput) return true;
  int64_t count = 1;
  for (const Window& w : pass.axes) count *= std::min(w.stride, w.x);
  return count <= kMostProducts;
}

bool are_weights_rows(const ConvPass& pass) {
  int64_t stride = 1;
  for (const size_t axis : {4U, 3U, 2U, 1U}) {
    const int64_t size = w_sizes(pass)[axis];
    if (size != 1 && pass.w.strides[axis] != stride) return false;
    stride *= size;
  }
  return true;
}

int64_t columns_of(const ConvPass& pass) {
  return is_forward(pass) ? pass.y_channels_per_group() : pass.x_channels_per_group();
}
int64_t places_of(const ConvPass& pass, const ProductAxes& axes) {
  int64_t places = pass.batch;
  for (const kernels::cuda::ProductAxis& axis : axes) places *= axis.results;
  return places;
}
int64_t taps_of(const ConvPass& pass) {
  return pass.axes[0].kernel * pass.axes[1].kernel * pass.axes[2].kernel;
}

ConvPass rounded(const ConvPass& pass, bool in_tf32) {
  ConvPass p = pass;
  if (in_tf32) p.rounding = OperandRounding::kHf32Bits10;
  return p;
}

double tile_tflops(ProductMath math, bool weight, const Machine& machine) {
  const double of_peak = weight ? 0.25 : 0.3;
  if (math == ProductMath::kF16 || math == ProductMath::kBF16) return of_peak * machine.gpu.f16_tflops;
  return of_peak * machine.gpu.tf32_tflops / (math == ProductMath::kF32 ? 3 : 1);
}

bool has_gather_way(const ConvPass& pass) { return is_few_residues(pass) || can_fold(pass); }

GatherWay gather_way(const ConvPass& pass, const RowOperand& source, RowType type, ProductMath math,
                     const Machine& machine) {
  return GatherPlanner(pass, source, type, math, machine).cheapest();
}

}  // namespace retrograd::engines::cuda
