// SPDX-License-Identifier: Apache-2.0
// Sizes of element types, and half precision.
#include "acl/acl_base.h"
#include "api/acl/tensor_rules.h"
#include "base/dtype.h"

size_t aclDataTypeSize(aclDataType dataType) { return retrograd::api::acl::size_of(dataType); }

float aclFloat16ToFloat(aclFloat16 value) { return retrograd::f16_to_f32(value); }

aclFloat16 aclFloatToFloat16(float value) { return retrograd::f32_to_f16(value); }
