// SPDX-License-Identifier: Apache-2.0
// The shape of the chosen instruction set's vectors.
#include "kernels/cpu/vector_shape.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_shape.cpp"
#include "kernels/cpu/all_targets.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vector_shape-inl.h"
#include "kernels/cpu/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

VectorShape shape() {
  VectorShape shape = kShape;
  shape.floats = static_cast<int64_t>(RG_VECTORS::Lanes(RG_VECTORS::ScalableTag<float>()));
  return shape;
}

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(shape);

}  // namespace

const VectorShape& vector_shape() {
  static const VectorShape instance = RG_CHOSEN(shape)();
  return instance;
}
const VectorShape& widest_shape() {
  static const VectorShape instance = RG_WIDEST(shape)();
  return instance;
}

}  // namespace retrograd::kernels::cpu
#endif
