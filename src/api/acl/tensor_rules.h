// SPDX-License-Identifier: Apache-2.0
// Which aclDataType and aclFormat an operator takes. These vendor types do not reach the layers below.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

#include "acl/acl_base.h"
#include "api/acl/objects.h"
#include "base/dtype.h"
#include "base/status.h"
#include "problem/request.h"

namespace retrograd::api::acl {

// The formats legal at one rank.
struct FormatRule {
  constexpr FormatRule(int at_rank, std::initializer_list<aclFormat> legal) : rank(at_rank) {
    for (const aclFormat format : legal) formats[count++] = format;
  }
  std::span<const aclFormat> legal() const { return {formats, count}; }

  int rank;
  size_t count = 0;
  aclFormat formats[3]{};
};

struct TensorRules {
  std::span<const aclDataType> dtypes;
  // A rank that is not listed passes: problem/ says which ranks there are.
  std::span<const FormatRule> formats;
};

inline constexpr aclDataType kAllTypes[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_HIFLOAT8,
                                            ACL_FLOAT8_E4M3FN};
inline constexpr aclDataType kWideTypes[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

inline constexpr FormatRule kConvFormats[] = {
    {3, {ACL_FORMAT_NCL, ACL_FORMAT_ND}}, {4, {ACL_FORMAT_NCHW}}, {5, {ACL_FORMAT_NCDHW}}};
inline constexpr FormatRule kConvBiasFormats[] = {{1, {ACL_FORMAT_ND}}};
inline constexpr FormatRule kConvTbcFormats[] = {{1, {ACL_FORMAT_ND, ACL_FORMAT_NCL}},
                                                 {3, {ACL_FORMAT_ND, ACL_FORMAT_NCL}}};
inline constexpr FormatRule kPool2dFormats[] = {{3, {ACL_FORMAT_NCL, ACL_FORMAT_NCHW, ACL_FORMAT_ND}},
                                                {4, {ACL_FORMAT_NCHW, ACL_FORMAT_ND}}};
inline constexpr FormatRule kPool3dFormats[] = {{4, {ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW, ACL_FORMAT_ND}},
                                                {5, {ACL_FORMAT_NCDHW, ACL_FORMAT_ND}}};

inline constexpr TensorRules kConvRules{kAllTypes, kConvFormats};
inline constexpr TensorRules kConvBiasRules{kAllTypes, kConvBiasFormats};
// Of a transposed convolution: any format.
inline constexpr TensorRules kTransposedBiasRules{kAllTypes, {}};
inline constexpr TensorRules kConvTbcRules{kWideTypes, kConvTbcFormats};
inline constexpr TensorRules kConvTbcGradWeightRules{kAllTypes, kConvTbcFormats};
inline constexpr TensorRules kPool2dRules{kWideTypes, kPool2dFormats};
inline constexpr TensorRules kPool3dRules{kWideTypes, kPool3dFormats};

Result<DType> check_tensor(const Tensor& tensor, const char* name, const TensorRules& rules);

// Bytes of an element; 0 where they are no whole ones.
size_t size_of(aclDataType dtype);
// The formats that problems tell apart; the others are kUnsaid.
problem::Format to_format(aclFormat format);

// "ACL_FLOAT16 (1)"; "77" for what is no enumerator.
std::string describe(aclDataType dtype);
std::string describe(aclFormat format);

}  // namespace retrograd::api::acl
