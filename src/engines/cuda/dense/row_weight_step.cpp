// SPDX-License-Identifier: Apache-2.0
// Rows, patches or planes of both operands, then the product.
#include "engines/cuda/dense/row_weight_step.h"

#include <fmt/format.h>

#include "engines/cuda/dense/product_axes.h"
#include "engines/cuda/layout/aligned_copies.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense_weight/plane_weight_plan.h"
#include "kernels/cuda/dense_weight/weight_product_plan.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {

using kernels::cuda::is_aligned;
using kernels::cuda::ProductMath;
using kernels::cuda::RowType;

RowWeightPass::RowWeightPass(const ConvPass& asked, RowType type, ProductMath math, const Machine& machine)
    : pass(asked),
      x(row_operand(pass, pass.x, x_sizes(pass), type)),
      y(row_operand(pass, pass.y, y_sizes(pass), type)) {
  if (!x.in_place) leave_out_unread(type);
  way = kernels::cuda::weight_way(shape_of(pass), math, {has_warpgroups(machine), machine.gpu.shared_bytes},
                                  x.in_place, y.in_place);
  if (way.form == kernels::cuda::WeightForm::kRows) return;
  x = {};
  if (kernels::cuda::in_planes(way.form)) y = {};
  if (way.form == kernels::cuda::WeightForm::kPlanes) return;
  x.bytes = room_for(
      kernels::cuda::places_of(shape_of(pass)) * pass.groups * kernels::cuda::patch_row(shape_of(pass), math),
      type);
}

void RowWeightPass::leave_out_unread(RowType type) {
  const Conv less = kernels::cuda::without_unread_places(shape_of(pass));
  for (size_t i = 0; i < 3; ++i) {
    pass.axes[i].x = less.axes[i].x;
    pass.axes[i].stride = less.axes[i].stride;
    pass.x.strides[2 + i] = less.x.strides[2 + i];
  }
  x = row_operand(pass, pass.x, x_sizes(pass), type);
}

namespace {

class RowWeightStep final : public Step {
 public:
  RowWeightStep(const ConvPass& pass, const Machine& machine)
      : type_(row_type(pass, pass.x, pass.y)),
        math_(math_of(type_, pass.rounding)),
        weight_(pass, type_, math_, machine),
        rows_(weight_.pass, type_, weight_.way.form == WeightForm::kRows ? weight_.x.bytes : 0,
              weight_.y.bytes) {}
  // Planes of 16-bit elements are copied by words, at even addresses.
  WantsAligned wants_aligned() const {
    const bool narrow = type_ != RowType::kF32;
    if (in_planes()) return {.x = narrow && weight_.way.form == WeightForm::kPlanes, .y = narrow, .w = false};
    return {.x = weight_.x.in_place, .y = weight_.y.in_place, .w = false};
  }
  Conversions conversions() const override { return rows_.all; }
  size_t workspace_bytes() const override {
    return weight_.x.bytes + weight_.y.bytes + static_cast<size_t>(floats()) * sizeof(float);
  }
  std::string describe() const override {
    const kernels::cuda::WeightWay& way = weight_.way;
    if (in_planes())
      return fmt::format("tiles {} x {}, planes in place{}, {} parts, multiplied as {}", way.planes.m,
                         way.planes.n, way.form == WeightForm::kPlanes ? "" : ", x as patches",
                         way.planes.parts, name_of(math_));
    const std::string tiles =
        way.choice.m == 0 ? "warpgroups" : fmt::format("tiles {} x {}", way.choice.m, way.choice.n);
    return fmt::format(
        "{}, {} rows{}{}{}, {} parts, multiplied as {}", tiles, retrograd::name_of(dtype_of(type_)),
        way.form == WeightForm::kPatches ? ", x as patches" : "", weight_.x.in_place ? ", x in place" : "",
        weight_.y.in_place ? ", y in place" : "", way.choice.parts, name_of(math_));
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto stream = stream_of(context);
    const Conv conv = bind(weight_.pass, bindings);
    if (in_planes()) return run_planes(conv, workspace, stream);
    const RowOperand &x = weight_.x, &y = weight_.y;
    if ((x.in_place && !is_aligned(conv.x.data)) || (y.in_place && !is_aligned(conv.y.data)))
      return run_directly(ConvPassKind::kGradWeight, conv, stream);
    kernels::cuda::WeightProduct product{};
    product.asked = conv;
    product.patches = weight_.way.form == WeightForm::kPatches;
    product.conv = product.patches ? kernels::cuda::conv_of_patches(conv) : conv;
    product.padded = leaves_source(weight_.pass);
    product.math = math_;
    product.choice = weight_.way.choice;
    std::byte* const patches = workspace + rows_.bytes;
    if (product.patches) kernels::cuda::make_patch_rows(conv, type_, patches, stream);
    product.x_rows = x.in_place ? conv.x.data : product.patches ? patches : workspace + rows_.x_at;
    product.y_rows = y.in_place ? conv.y.data : workspace + rows_.y_at;
    product.workspace = reinterpret_cast<float*>(workspace + x.bytes + y.bytes);
    kernels::cuda::weight_product(product, stream);
  }

 private:
  using WeightForm = kernels::cuda::WeightForm;

  bool in_planes() const { return kernels::cuda::in_planes(weight_.way.form); }
  int64_t floats() const {
    const Conv shape = shape_of(weight_.pass);
    if (in_planes()) return kernels::cuda::plane_weight_floats(shape, weight_.way.planes);
    return kernels::cuda::weight_product_floats(
        weight_.way.form == WeightForm::kPatches ? kernels::cuda::conv_of_patches(shape) : shape, math_,
        weight_.way.choice);
  }
  void run_planes(const Conv& conv, std::byte* workspace, Stream stream) const {
    kernels::cuda::PlaneWeight product{};
    const bool patches = weight_.way.form == WeightForm::kPatchPlanes;
    product.asked = conv;
    product.conv = patches ? kernels::cuda::conv_of_patch_planes(conv, math_) : conv;
    if (patches) product.conv.x.data = workspace;
    product.choice = weight_.way.planes;
    product.choice.copies = kernels::cuda::with_addresses(product.choice.copies, product.conv);
    if (!product.choice.copies.takes) return run_directly(ConvPassKind::kGradWeight, conv, stream);
    if (patches) kernels::cuda::make_patch_planes(conv, type_, workspace, stream);
    product.padded = leaves_source(weight_.pass);
    product.math = math_;
    product.workspace = reinterpret_cast<float*>(workspace + weight_.x.bytes);
    kernels::cuda::plane_weight(product, stream);
  }

  RowType type_;
  ProductMath math_;
  RowWeightPass weight_;
  RowConversions rows_;
};

}  // namespace

std::unique_ptr<const Step> make_row_weight_step(const ConvPass& pass, const Machine& machine) {
  return with_aligned_copies(pass, std::make_unique<RowWeightStep>(pass, machine));
}

}  // namespace retrograd::engines::cuda
