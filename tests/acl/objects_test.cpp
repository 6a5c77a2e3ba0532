// SPDX-License-Identifier: Apache-2.0
// Tensors, arrays, scalars and lists: what is kept, what is handed out, and what handles that are none are
// told.
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "client.h"

namespace retrograd::acl_test::objects_test {
namespace {

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR, kDead = ACLNN_ERR_INNER_NULLPTR;

// None of these calls needs aclInit.
TEST(Tensor, KeepsWhatItWasGiven) {
  const int64_t shape[] = {2, 3, -4}, strides[] = {1, 0, -7}, storage[] = {5, 6};
  aclTensor* tensor = aclCreateTensor(shape, 3, ACL_BF16, strides, 11, ACL_FORMAT_NCL, storage, 2, nullptr);
  ASSERT_NE(tensor, nullptr);
  int64_t* values = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(aclGetViewShape(tensor, &values, &count), ACLNN_SUCCESS);
  EXPECT_EQ(Sizes(values, values + count), (Sizes{2, 3, -4}));
  delete[] values;
  ASSERT_EQ(aclGetViewStrides(tensor, &values, &count), ACLNN_SUCCESS);
  EXPECT_EQ(Sizes(values, values + count), (Sizes{1, 0, -7}));
  delete[] values;
  ASSERT_EQ(aclGetStorageShape(tensor, &values, &count), ACLNN_SUCCESS);
  EXPECT_EQ(Sizes(values, values + count), (Sizes{5, 6}));
  delete[] values;
  int64_t offset = 0;
  aclFormat format = ACL_FORMAT_ND;
  aclDataType dtype = ACL_FLOAT;
  EXPECT_EQ(aclGetViewOffset(tensor, &offset), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetFormat(tensor, &format), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetDataType(tensor, &dtype), ACLNN_SUCCESS);
  EXPECT_EQ(offset, 11);
  EXPECT_EQ(format, ACL_FORMAT_NCL);
  EXPECT_EQ(dtype, ACL_BF16);
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
}

TEST(Tensor, HasDenseRowMajorStridesWhenNoneAreGiven) {
  const int64_t shape[] = {2, 3, 4};
  aclTensor* tensor = aclCreateTensor(shape, 3, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  int64_t* values = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(aclGetViewStrides(tensor, &values, &count), ACLNN_SUCCESS);
  EXPECT_EQ(Sizes(values, values + count), (Sizes{12, 4, 1}));
  delete[] values;
  ASSERT_EQ(aclGetStorageShape(tensor, &values, &count), ACLNN_SUCCESS);
  EXPECT_EQ(count, 0u);
  delete[] values;
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
}

TEST(Tensor, MayHaveRank0To8AndAnyTypeFormatAndSizes) {
  const Sizes shape(8, std::numeric_limits<int64_t>::max());
  for (uint64_t rank = 0; rank <= 8; ++rank) {
    aclTensor* tensor = aclCreateTensor(shape.data(), rank, static_cast<aclDataType>(1000), nullptr, -5,
                                        static_cast<aclFormat>(-77), shape.data(), rank, nullptr);
    ASSERT_NE(tensor, nullptr) << rank;
    aclDataType dtype = ACL_FLOAT;
    EXPECT_EQ(aclGetDataType(tensor, &dtype), ACLNN_SUCCESS);
    EXPECT_EQ(static_cast<int>(dtype), 1000);
    EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  }
}

TEST(Tensor, IsNotMadeOfNullSizesOrMoreThanEight) {
  const Sizes shape(16, 1);
  const auto create = [&](const int64_t* dims, uint64_t rank, const int64_t* storage, uint64_t storage_rank) {
    return aclCreateTensor(dims, rank, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, storage, storage_rank, nullptr);
  };
  EXPECT_EQ(create(nullptr, 1, nullptr, 0), nullptr);
  EXPECT_TRUE(failed_with(161001, kNull, {"aclCreateTensor", "viewDims is null"}));
  EXPECT_EQ(create(shape.data(), 9, nullptr, 0), nullptr);
  EXPECT_TRUE(failed_with(161002, 161002, {"viewDimsNum is 9", "at most 8"}));
  EXPECT_EQ(create(shape.data(), UINT64_MAX, nullptr, 0), nullptr);
  EXPECT_TRUE(failed_with(161002, 161002, {"viewDimsNum is 18446744073709551615"}));
  EXPECT_EQ(create(shape.data(), 2, nullptr, 3), nullptr);
  EXPECT_TRUE(failed_with(161001, kNull, {"storageDims is null"}));
  EXPECT_EQ(create(shape.data(), 2, shape.data(), 9), nullptr);
  EXPECT_TRUE(failed_with(161002, 161002, {"storageDimsNum is 9"}));
}

TEST(Tensor, GettersTellNullAndDeadApart) {
  aclTensor* tensor = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  ASSERT_NE(tensor, nullptr);
  int64_t* values = nullptr;
  uint64_t count = 77;
  int64_t offset = 77;
  aclFormat format = ACL_FORMAT_NC;
  aclDataType dtype = ACL_BOOL;
  EXPECT_TRUE(failed_with(aclGetViewShape(tensor, nullptr, &count), kNull, {"viewDims is null"}));
  EXPECT_TRUE(failed_with(aclGetViewShape(tensor, &values, nullptr), kNull, {"viewDimsNum is null"}));
  EXPECT_TRUE(failed_with(aclGetStorageShape(tensor, nullptr, &count), kNull, {"storageDims is null"}));
  EXPECT_TRUE(failed_with(aclGetStorageShape(tensor, &values, nullptr), kNull, {"storageDimsNum is null"}));
  EXPECT_TRUE(failed_with(aclGetViewStrides(tensor, nullptr, &count), kNull, {"stridesValue is null"}));
  EXPECT_TRUE(failed_with(aclGetViewStrides(tensor, &values, nullptr), kNull, {"stridesNum is null"}));
  EXPECT_TRUE(failed_with(aclGetViewOffset(tensor, nullptr), kNull, {"offset is null"}));
  EXPECT_TRUE(failed_with(aclGetFormat(tensor, nullptr), kNull, {"format is null"}));
  EXPECT_TRUE(failed_with(aclGetDataType(tensor, nullptr), kNull, {"dataType is null"}));
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);

  for (const aclTensor* handle :
       {static_cast<const aclTensor*>(nullptr), const_cast<const aclTensor*>(tensor)}) {
    const aclnnStatus expected = handle == nullptr ? kNull : kDead;
    EXPECT_TRUE(failed_with(aclGetViewShape(handle, &values, &count), expected, {"tensor is"}));
    EXPECT_TRUE(failed_with(aclGetStorageShape(handle, &values, &count), expected, {"tensor is"}));
    EXPECT_TRUE(failed_with(aclGetViewStrides(handle, &values, &count), expected, {"tensor is"}));
    EXPECT_TRUE(failed_with(aclGetViewOffset(handle, &offset), expected, {"tensor is"}));
    EXPECT_TRUE(failed_with(aclGetFormat(handle, &format), expected, {"tensor is"}));
    EXPECT_TRUE(failed_with(aclGetDataType(handle, &dtype), expected, {"tensor is"}));
  }
  EXPECT_EQ(values, nullptr);
  EXPECT_EQ(count, 77u);
  EXPECT_EQ(offset, 77);
  EXPECT_EQ(format, ACL_FORMAT_NC);
  EXPECT_EQ(dtype, ACL_BOOL);
}

TEST(Objects, AreDestroyedOnceAndNullAnyTime) {
  const int64_t number = 1;
  const float real = 1;
  const bool flag = true;
  double scalar_value = 1;
  aclTensor* tensor = aclCreateTensor(&number, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  aclIntArray* ints = aclCreateIntArray(&number, 1);
  aclFloatArray* floats = aclCreateFloatArray(&real, 1);
  aclBoolArray* bools = aclCreateBoolArray(&flag, 1);
  aclScalar* scalar = aclCreateScalar(&scalar_value, ACL_DOUBLE);
  aclTensorList* list = aclCreateTensorList(&tensor, 1);
  ASSERT_TRUE(tensor && ints && floats && bools && scalar && list);
  // A handle of one kind is none of another.
  EXPECT_TRUE(failed_with(aclDestroyTensor(reinterpret_cast<aclTensor*>(ints)), kDead,
                          {"expected a live aclTensor"}));
  EXPECT_TRUE(
      failed_with(aclDestroyIntArray(reinterpret_cast<aclIntArray*>(tensor)), kDead, {"live aclIntArray"}));
  EXPECT_TRUE(
      failed_with(aclDestroyScalar(reinterpret_cast<const aclScalar*>(&number)), kDead, {"live aclScalar"}));
  for (const bool first : {true, false}) {
    const aclnnStatus expected = first ? ACLNN_SUCCESS : kDead;
    EXPECT_EQ(aclDestroyTensorList(list), expected);
    EXPECT_EQ(aclDestroyIntArray(ints), expected);
    EXPECT_EQ(aclDestroyFloatArray(floats), expected);
    EXPECT_EQ(aclDestroyBoolArray(bools), expected);
    EXPECT_EQ(aclDestroyScalar(scalar), expected);
  }
  EXPECT_TRUE(failed_with(aclDestroyTensor(tensor), kDead, {"was destroyed"})) << "the list destroyed it";
  EXPECT_EQ(aclDestroyTensor(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyIntArray(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyFloatArray(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyBoolArray(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyScalar(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyTensorList(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyAclOpExecutor(nullptr), ACLNN_SUCCESS);
}

TEST(Objects, HaveHandlesThatAreNeverUsedAgain) {
  aclIntArray* first = aclCreateIntArray(nullptr, 0);
  ASSERT_EQ(aclDestroyIntArray(first), ACLNN_SUCCESS);
  aclIntArray* second = aclCreateIntArray(nullptr, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(aclDestroyIntArray(second), ACLNN_SUCCESS);
}

TEST(Arrays, TellTheirSizes) {
  const int64_t numbers[] = {1, 2, 3};
  const float reals[] = {1, 2};
  const bool flags[] = {true, false, true, false};
  aclTensor* tensor = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  const aclTensor* const tensors[] = {tensor, nullptr};
  aclIntArray* ints = aclCreateIntArray(numbers, 3);
  aclFloatArray* floats = aclCreateFloatArray(reals, 2);
  aclBoolArray* bools = aclCreateBoolArray(flags, 4);
  aclTensorList* list = aclCreateTensorList(tensors, 2);
  uint64_t size = 0;
  EXPECT_EQ(aclGetIntArraySize(ints, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(aclGetFloatArraySize(floats, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, 2u);
  EXPECT_EQ(aclGetBoolArraySize(bools, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(aclGetTensorListSize(list, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, 2u);
  EXPECT_TRUE(failed_with(aclGetIntArraySize(ints, nullptr), kNull, {"size is null"}));
  EXPECT_TRUE(failed_with(aclGetIntArraySize(nullptr, &size), kNull, {"array is null"}));
  EXPECT_TRUE(failed_with(aclGetFloatArraySize(nullptr, &size), kNull, {"array is null"}));
  EXPECT_TRUE(failed_with(aclGetBoolArraySize(nullptr, &size), kNull, {"array is null"}));
  EXPECT_TRUE(failed_with(aclGetTensorListSize(nullptr, &size), kNull, {"tensorList is null"}));
  EXPECT_TRUE(failed_with(aclGetBoolArraySize(reinterpret_cast<aclBoolArray*>(ints), &size), kDead,
                          {"aclBoolArray"}));
  EXPECT_EQ(aclDestroyIntArray(ints), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyFloatArray(floats), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyBoolArray(bools), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyTensorList(list), ACLNN_SUCCESS);
  EXPECT_TRUE(failed_with(aclGetIntArraySize(ints, &size), kDead, {"array is"}));
}

TEST(Arrays, AreNotMadeOfNullOrOfWildLengths) {
  const int64_t number = 1;
  const float real = 1;
  const bool flag = true;
  EXPECT_EQ(aclCreateIntArray(nullptr, 1), nullptr);
  EXPECT_TRUE(failed_with(161001, kNull, {"aclCreateIntArray: value is null"}));
  EXPECT_EQ(aclCreateFloatArray(nullptr, 1), nullptr);
  EXPECT_EQ(aclCreateBoolArray(nullptr, 1), nullptr);
  EXPECT_EQ(aclCreateTensorList(nullptr, 1), nullptr);
  for (const uint64_t size : {UINT64_MAX, uint64_t{1} << 61, uint64_t{1} << 40, uint64_t{65537}}) {
    EXPECT_EQ(aclCreateIntArray(&number, size), nullptr);
    EXPECT_EQ(aclCreateFloatArray(&real, size), nullptr);
    EXPECT_EQ(aclCreateBoolArray(&flag, size), nullptr);
    EXPECT_TRUE(failed_with(161002, 161002, {"size is " + std::to_string(size), "at most 65536"}));
  }
}

TEST(Arrays, TakeAByteThatIsNeitherTrueNorFalseForTrue) {
  const std::array<unsigned char, 3> bytes = {2, 0, 255};
  aclBoolArray* mask = aclCreateBoolArray(reinterpret_cast<const bool*>(bytes.data()), bytes.size());
  ConvCall call;
  call.mask.instead = mask;
  call.grad_input.null = true;
  EXPECT_TRUE(refused(call.phase_one(), kNull, {"gradInput is null"}));
  call.grad_input.null = false;
  call.grad_bias.null = true;
  EXPECT_TRUE(refused(call.phase_one(), kNull, {"gradBias is null"}));
  EXPECT_EQ(aclDestroyBoolArray(mask), ACLNN_SUCCESS);
}

TEST(TensorList, HoldsLiveTensorsOnly) {
  aclTensor* dead = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  ASSERT_EQ(aclDestroyTensor(dead), ACLNN_SUCCESS);
  EXPECT_EQ(aclCreateTensorList(&dead, 1), nullptr);
  EXPECT_TRUE(failed_with(561103, kDead, {"value[0] is", "expected a live aclTensor"}));
}

TEST(TensorList, MayOutliveItsTensors) {
  aclTensor* tensor = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  aclTensorList* list = aclCreateTensorList(&tensor, 1);
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyTensorList(list), ACLNN_SUCCESS);
}

TEST(Scalar, IsMadeOfWholeBytes) {
  std::array<unsigned char, 16> value{};
  for (int dtype = -1; dtype <= 40; ++dtype) {
    const auto type = static_cast<aclDataType>(dtype);
    aclScalar* scalar = aclCreateScalar(value.data(), type);
    EXPECT_EQ(scalar != nullptr, aclDataTypeSize(type) > 0) << dtype;
    EXPECT_EQ(aclDestroyScalar(scalar), ACLNN_SUCCESS);
  }
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
}

TEST(BaseTypes, HaveTheirSizes) {
  EXPECT_EQ(aclDataTypeSize(ACL_FLOAT), 4u);
  EXPECT_EQ(aclDataTypeSize(ACL_FLOAT16), 2u);
  EXPECT_EQ(aclDataTypeSize(ACL_BF16), 2u);
  EXPECT_EQ(aclDataTypeSize(ACL_HIFLOAT8), 1u);
  EXPECT_EQ(aclDataTypeSize(ACL_COMPLEX128), 16u);
  EXPECT_EQ(aclDataTypeSize(ACL_INT4), 0u);
  EXPECT_EQ(aclDataTypeSize(ACL_DT_UNDEFINED), 0u);
  EXPECT_EQ(aclDataTypeSize(static_cast<aclDataType>(5)), 0u);
}

TEST(BaseTypes, ConvertHalfPrecisionToNearestEven) {
  EXPECT_EQ(aclFloatToFloat16(1.0f), 0x3C00);
  EXPECT_EQ(aclFloat16ToFloat(0xC000), -2.0f);
  EXPECT_EQ(aclFloatToFloat16(1 + std::ldexp(1.0f, -11)), 0x3C00);
  EXPECT_EQ(aclFloatToFloat16(1 + 3 * std::ldexp(1.0f, -11)), 0x3C02);
  EXPECT_TRUE(std::isnan(aclFloat16ToFloat(0x7E00)));
}

}  // namespace
}  // namespace retrograd::acl_test::objects_test
