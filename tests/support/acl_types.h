// SPDX-License-Identifier: Apache-2.0
// Our types as aclnn names them.
#pragma once

#include "acl/acl.h"
#include "base/dtype.h"

namespace retrograd::test {

inline aclDataType acl_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ACL_FLOAT;
    case DType::kF16:
      return ACL_FLOAT16;
    case DType::kBF16:
      return ACL_BF16;
    case DType::kHiF8:
      return ACL_HIFLOAT8;
    case DType::kE4M3:
      return ACL_FLOAT8_E4M3FN;
  }
  return ACL_DT_UNDEFINED;
}

}  // namespace retrograd::test
