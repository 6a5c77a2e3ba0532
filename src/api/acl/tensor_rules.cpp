// SPDX-License-Identifier: Apache-2.0
// Judging element types and formats, and naming them in messages.
#include "api/acl/tensor_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace retrograd::api::acl {
namespace {

constexpr std::pair<aclDataType, const char*> kTypeNames[] = {
    {ACL_DT_UNDEFINED, "ACL_DT_UNDEFINED"},
    {ACL_FLOAT, "ACL_FLOAT"},
    {ACL_FLOAT16, "ACL_FLOAT16"},
    {ACL_INT8, "ACL_INT8"},
    {ACL_INT32, "ACL_INT32"},
    {ACL_UINT8, "ACL_UINT8"},
    {ACL_INT16, "ACL_INT16"},
    {ACL_UINT16, "ACL_UINT16"},
    {ACL_UINT32, "ACL_UINT32"},
    {ACL_INT64, "ACL_INT64"},
    {ACL_UINT64, "ACL_UINT64"},
    {ACL_DOUBLE, "ACL_DOUBLE"},
    {ACL_BOOL, "ACL_BOOL"},
    {ACL_STRING, "ACL_STRING"},
    {ACL_COMPLEX64, "ACL_COMPLEX64"},
    {ACL_COMPLEX128, "ACL_COMPLEX128"},
    {ACL_BF16, "ACL_BF16"},
    {ACL_INT4, "ACL_INT4"},
    {ACL_UINT1, "ACL_UINT1"},
    {ACL_COMPLEX32, "ACL_COMPLEX32"},
    {ACL_HIFLOAT8, "ACL_HIFLOAT8"},
    {ACL_FLOAT8_E5M2, "ACL_FLOAT8_E5M2"},
    {ACL_FLOAT8_E4M3FN, "ACL_FLOAT8_E4M3FN"},
};

constexpr std::pair<aclFormat, const char*> kFormatNames[] = {
    {ACL_FORMAT_UNDEFINED, "ACL_FORMAT_UNDEFINED"},
    {ACL_FORMAT_NCHW, "ACL_FORMAT_NCHW"},
    {ACL_FORMAT_NHWC, "ACL_FORMAT_NHWC"},
    {ACL_FORMAT_ND, "ACL_FORMAT_ND"},
    {ACL_FORMAT_NC1HWC0, "ACL_FORMAT_NC1HWC0"},
    {ACL_FORMAT_FRACTAL_Z, "ACL_FORMAT_FRACTAL_Z"},
    {ACL_FORMAT_HWCN, "ACL_FORMAT_HWCN"},
    {ACL_FORMAT_NDHWC, "ACL_FORMAT_NDHWC"},
    {ACL_FORMAT_FRACTAL_NZ, "ACL_FORMAT_FRACTAL_NZ"},
    {ACL_FORMAT_NCDHW, "ACL_FORMAT_NCDHW"},
    {ACL_FORMAT_NDC1HWC0, "ACL_FORMAT_NDC1HWC0"},
    {ACL_FORMAT_NC, "ACL_FORMAT_NC"},
    {ACL_FORMAT_NCL, "ACL_FORMAT_NCL"},
};

template <class Names, class Value>
std::string describe_in(const Names& names, Value value) {
  for (const auto& [known, name] : names)
    if (known == value) return fmt::format("{} ({})", name, static_cast<int>(value));
  return fmt::format("{}", static_cast<int>(value));
}

template <class Values>
std::string list(const Values& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : ", ") + describe(value);
  return text;
}

std::optional<DType> to_dtype(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT:
      return DType::kF32;
    case ACL_FLOAT16:
      return DType::kF16;
    case ACL_BF16:
      return DType::kBF16;
    case ACL_HIFLOAT8:
      return DType::kHiF8;
    case ACL_FLOAT8_E4M3FN:
      return DType::kE4M3;
    default:
      return std::nullopt;
  }
}

Status check_format(const Tensor& tensor, const char* name, std::span<const FormatRule> rules) {
  const auto rule = std::find_if(rules.begin(), rules.end(),
                                 [&](const FormatRule& r) { return r.rank == tensor.shape.rank(); });
  if (rule == rules.end()) return Status::ok();
  const auto legal = rule->legal();
  if (std::find(legal.begin(), legal.end(), tensor.format) != legal.end()) return Status::ok();
  return Status(Code::kInvalidArgument, "{}.format is {}, expected {} at rank {}", name,
                describe(tensor.format), list(legal), rule->rank);
}

}  // namespace

problem::Format to_format(aclFormat format) {
  switch (format) {
    case ACL_FORMAT_NCL:
      return problem::Format::kNcl;
    case ACL_FORMAT_ND:
      return problem::Format::kNd;
    case ACL_FORMAT_NCHW:
      return problem::Format::kNchw;
    case ACL_FORMAT_NCDHW:
      return problem::Format::kNcdhw;
    default:
      return problem::Format::kUnsaid;
  }
}

std::string describe(aclDataType dtype) { return describe_in(kTypeNames, dtype); }
std::string describe(aclFormat format) { return describe_in(kFormatNames, format); }

Result<DType> check_tensor(const Tensor& tensor, const char* name, const TensorRules& rules) {
  const auto dtype = to_dtype(tensor.dtype);
  const bool legal = std::find(rules.dtypes.begin(), rules.dtypes.end(), tensor.dtype) != rules.dtypes.end();
  if (!dtype || !legal)
    return Status(Code::kBadDtype, "{}.dtype is {}, expected one of {}", name, describe(tensor.dtype),
                  list(rules.dtypes));
  RG_CHECK(check_format(tensor, name, rules.formats));
  return *dtype;
}

}  // namespace retrograd::api::acl
