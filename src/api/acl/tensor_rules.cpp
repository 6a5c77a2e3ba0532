// SPDX-License-Identifier: Apache-2.0
// Judging element types and formats, naming them in messages; what callers ask of types.
#include "api/acl/tensor_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace retrograd::api::acl {
namespace {

struct TypeRow {
  aclDataType value;
  const char* name;
  size_t bytes;  // 0: not whole ones
  std::optional<DType> computed = std::nullopt;
};
constexpr TypeRow kTypes[] = {
    {ACL_DT_UNDEFINED, "ACL_DT_UNDEFINED", 0},
    {ACL_FLOAT, "ACL_FLOAT", 4, DType::kF32},
    {ACL_FLOAT16, "ACL_FLOAT16", 2, DType::kF16},
    {ACL_INT8, "ACL_INT8", 1},
    {ACL_INT32, "ACL_INT32", 4},
    {ACL_UINT8, "ACL_UINT8", 1},
    {ACL_INT16, "ACL_INT16", 2},
    {ACL_UINT16, "ACL_UINT16", 2},
    {ACL_UINT32, "ACL_UINT32", 4},
    {ACL_INT64, "ACL_INT64", 8},
    {ACL_UINT64, "ACL_UINT64", 8},
    {ACL_DOUBLE, "ACL_DOUBLE", 8},
    {ACL_BOOL, "ACL_BOOL", 1},
    {ACL_STRING, "ACL_STRING", 0},
    {ACL_COMPLEX64, "ACL_COMPLEX64", 8},
    {ACL_COMPLEX128, "ACL_COMPLEX128", 16},
    {ACL_BF16, "ACL_BF16", 2, DType::kBF16},
    {ACL_INT4, "ACL_INT4", 0},
    {ACL_UINT1, "ACL_UINT1", 0},
    {ACL_COMPLEX32, "ACL_COMPLEX32", 4},
    {ACL_HIFLOAT8, "ACL_HIFLOAT8", 1, DType::kHiF8},
    {ACL_FLOAT8_E5M2, "ACL_FLOAT8_E5M2", 1},
    {ACL_FLOAT8_E4M3FN, "ACL_FLOAT8_E4M3FN", 1, DType::kE4M3},
};

struct FormatRow {
  aclFormat value;
  const char* name;
  problem::Format told_apart = problem::Format::kUnsaid;
};
constexpr FormatRow kFormats[] = {
    {ACL_FORMAT_UNDEFINED, "ACL_FORMAT_UNDEFINED"},
    {ACL_FORMAT_NCHW, "ACL_FORMAT_NCHW", problem::Format::kNchw},
    {ACL_FORMAT_NHWC, "ACL_FORMAT_NHWC"},
    {ACL_FORMAT_ND, "ACL_FORMAT_ND", problem::Format::kNd},
    {ACL_FORMAT_NC1HWC0, "ACL_FORMAT_NC1HWC0"},
    {ACL_FORMAT_FRACTAL_Z, "ACL_FORMAT_FRACTAL_Z"},
    {ACL_FORMAT_HWCN, "ACL_FORMAT_HWCN"},
    {ACL_FORMAT_NDHWC, "ACL_FORMAT_NDHWC"},
    {ACL_FORMAT_FRACTAL_NZ, "ACL_FORMAT_FRACTAL_NZ"},
    {ACL_FORMAT_NCDHW, "ACL_FORMAT_NCDHW", problem::Format::kNcdhw},
    {ACL_FORMAT_NDC1HWC0, "ACL_FORMAT_NDC1HWC0"},
    {ACL_FORMAT_NC, "ACL_FORMAT_NC"},
    {ACL_FORMAT_NCL, "ACL_FORMAT_NCL", problem::Format::kNcl},
};

// Null: no enumerator.
template <class Row, size_t kRows, class Value>
const Row* row_of(const Row (&rows)[kRows], Value value) {
  const Row* const row = std::find_if(rows, rows + kRows, [&](const Row& r) { return r.value == value; });
  return row == rows + kRows ? nullptr : row;
}

template <class Rows, class Value>
std::string describe_in(const Rows& rows, Value value) {
  const auto* const row = row_of(rows, value);
  const int number = static_cast<int>(value);
  return row != nullptr ? fmt::format("{} ({})", row->name, number) : fmt::to_string(number);
}

template <class Values>
std::string list(const Values& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : ", ") + describe(value);
  return text;
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
  const FormatRow* const row = row_of(kFormats, format);
  return row == nullptr ? problem::Format::kUnsaid : row->told_apart;
}

size_t size_of(aclDataType dtype) {
  const TypeRow* const row = row_of(kTypes, dtype);
  return row == nullptr ? 0 : row->bytes;
}

std::string describe(aclDataType dtype) { return describe_in(kTypes, dtype); }
std::string describe(aclFormat format) { return describe_in(kFormats, format); }

Result<DType> check_tensor(const Tensor& tensor, const char* name, const TensorRules& rules) {
  if (std::find(rules.dtypes.begin(), rules.dtypes.end(), tensor.dtype) == rules.dtypes.end())
    return Status(Code::kBadDtype, "{}.dtype is {}, expected one of {}", name, describe(tensor.dtype),
                  list(rules.dtypes));
  RG_CHECK(check_format(tensor, name, rules.formats));
  return *row_of(kTypes, tensor.dtype)->computed;
}

}  // namespace retrograd::api::acl

size_t aclDataTypeSize(aclDataType dataType) { return retrograd::api::acl::size_of(dataType); }

float aclFloat16ToFloat(aclFloat16 value) { return retrograd::f16_to_f32(value); }

aclFloat16 aclFloatToFloat16(float value) { return retrograd::f32_to_f16(value); }
