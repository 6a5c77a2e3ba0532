// SPDX-License-Identifier: Apache-2.0
// Sweeps of hostile arguments over every operator: each is answered with a code, nothing is written, nothing
// crashes.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "client.h"

namespace retrograd::acl_test {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();

// A legal answer: success with both results written, or a documented code with neither.
void expect_sane(const PhaseOne& result) {
  if (result.status == ACLNN_SUCCESS) {
    EXPECT_NE(result.executor, PhaseOne::poisoned());
    EXPECT_NE(result.workspace_size, PhaseOne::kPoison);
    EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
    return;
  }
  EXPECT_TRUE(refused(result, ACLNN_ERR_PARAM_INVALID, {" is "})) << result.message;
}

template <class Call>
class BadInput : public AclTest {
 protected:
  static std::vector<TensorArg*> tensors(Call& call) {
    auto all = call.inputs();
    const auto outputs = call.outputs();
    all.insert(all.end(), outputs.begin(), outputs.end());
    return all;
  }
  static size_t tensor_count() {
    Call call;
    return tensors(call).size();
  }
};

using Calls = ::testing::Types<ConvCall, TbcCall, Pool2dCall, Pool3dCall>;
TYPED_TEST_SUITE(BadInput, Calls);

TYPED_TEST(BadInput, OfEveryRankFrom0To8) {
  for (size_t which = 0; which < this->tensor_count(); ++which) {
    for (size_t rank = 0; rank <= 8; ++rank) {
      TypeParam call;
      TensorArg& tensor = *this->tensors(call)[which];
      if (rank == tensor.shape.size()) continue;
      tensor.shape.assign(rank, 2);
      SCOPED_TRACE(::testing::Message() << "tensor " << which << " rank " << rank);
      const PhaseOne result = call.phase_one();
      EXPECT_TRUE(refused(result, ACLNN_ERR_PARAM_INVALID, {"rank"})) << result.message;
    }
  }
  for (size_t rank = 0; rank <= 8; ++rank) {  // all tensors at once
    TypeParam call;
    for (TensorArg* tensor : this->tensors(call)) tensor->shape.assign(rank, 1);
    const PhaseOne result = call.phase_one();
    EXPECT_EQ(result.status, ACLNN_ERR_PARAM_INVALID) << rank;
  }
}

TYPED_TEST(BadInput, OfZeroNegativeAndEnormousSizes) {
  for (size_t which = 0; which < this->tensor_count(); ++which) {
    for (size_t axis = 0; axis < 5; ++axis) {
      for (const int64_t size :
           {int64_t{0}, int64_t{-1}, kMin, kMax, kMax / 2, int64_t{1} << 40, int64_t{1} << 62}) {
        TypeParam call;
        TensorArg& tensor = *this->tensors(call)[which];
        if (axis >= tensor.shape.size() || tensor.shape[axis] == size) continue;
        tensor.shape[axis] = size;
        SCOPED_TRACE(::testing::Message() << "tensor " << which << " axis " << axis << " size " << size);
        const PhaseOne result = call.phase_one();
        EXPECT_TRUE(refused(result, ACLNN_ERR_PARAM_INVALID, {".shape"})) << result.message;
      }
    }
  }
}

TYPED_TEST(BadInput, OfSizesThatAreEnormousTogether) {
  for (const int64_t size :
       {int64_t{0}, int64_t{-1}, kMin, kMax, kMax / 2, int64_t{1} << 31, int64_t{1} << 62}) {
    for (size_t axis = 0; axis < TypeParam().inputs()[0]->shape.size(); ++axis) {
      TypeParam call;
      for (TensorArg* tensor : this->tensors(call))
        if (axis < tensor->shape.size()) tensor->shape[axis] = size;
      SCOPED_TRACE(::testing::Message() << "axis " << axis << " size " << size);
      const PhaseOne result = call.phase_one();
      // Some of these are problems: no elements, or more than a machine holds but 64 bits can count.
      if (result.status == ACLNN_SUCCESS) {
        EXPECT_TRUE(size == 0 || size == int64_t{1} << 31);
        EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
      } else {
        EXPECT_TRUE(refused(result, ACLNN_ERR_PARAM_INVALID, {})) << result.message;
      }
    }
  }
}

TYPED_TEST(BadInput, OfWildStridesAndOffsets) {
  for (size_t which = 0; which < this->tensor_count(); ++which) {
    for (const int64_t value : {int64_t{-1}, kMin, kMax, kMax / 4, int64_t{1} << 60}) {
      for (size_t axis = 0; axis < 5; ++axis) {
        TypeParam call;
        TensorArg& tensor = *this->tensors(call)[which];
        if (axis >= tensor.shape.size()) continue;
        tensor.strides = dense_strides(tensor.shape);
        (*tensor.strides)[axis] = value;
        tensor.storage = tensor.shape;
        SCOPED_TRACE(::testing::Message() << "tensor " << which << " axis " << axis << " stride " << value);
        const bool unused = tensor.shape[axis] == 1;
        const PhaseOne result = call.phase_one();
        if (unused) {
          EXPECT_EQ(result.status, ACLNN_SUCCESS) << result.message;
          EXPECT_EQ(aclDestroyAclOpExecutor(result.executor), ACLNN_SUCCESS);
        } else {
          EXPECT_TRUE(refused(result, ACLNN_ERR_PARAM_INVALID, {"strides"})) << result.message;
        }
      }
      TypeParam call;
      TensorArg& tensor = *this->tensors(call)[which];
      tensor.offset = value;
      tensor.storage = tensor.shape;
      EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {"offset"})) << which;
    }
  }
}

TYPED_TEST(BadInput, OfOffsetsWhoseBytesOverflow) {
  for (size_t which = 0; which < this->tensor_count(); ++which) {
    for (const int64_t offset : {kMin, kMax, int64_t{1} << 61}) {
      TypeParam call;
      this->tensors(call)[which]->offset = offset;  // of a storage that is not known
      EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID,
                          {".offset is " + std::to_string(offset), "64 bits"}));
    }
  }
}

TYPED_TEST(BadInput, OfStoragesThatAreNone) {
  for (size_t which = 0; which < this->tensor_count(); ++which) {
    for (const Sizes& storage : {Sizes{0}, Sizes{-1}, Sizes{kMax, kMax}, Sizes{1}, Sizes{kMin, -1}}) {
      TypeParam call;
      TensorArg& tensor = *this->tensors(call)[which];
      tensor.storage = storage;
      SCOPED_TRACE(::testing::Message() << "tensor " << which << " storage " << storage[0]);
      EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {"stor"}));
    }
  }
}

TYPED_TEST(BadInput, OfEveryOtherTypeAndFormat) {
  for (size_t which = 0; which < this->tensor_count(); ++which) {
    for (int value = -2; value <= 50; ++value) {
      TypeParam call;
      TensorArg& tensor = *this->tensors(call)[which];
      tensor.dtype = static_cast<aclDataType>(value);
      SCOPED_TRACE(::testing::Message() << "tensor " << which << " value " << value);
      const bool wide = value == ACL_FLOAT || value == ACL_FLOAT16 || value == ACL_BF16;
      const bool narrow = value == ACL_HIFLOAT8 || value == ACL_FLOAT8_E4M3FN;
      const bool narrow_taken =
          std::is_same_v<TypeParam, TbcCall> && &tensor == this->tensors(call)[5];  // gradWeight
      const PhaseOne typed = call.phase_one();
      if (wide || (narrow && narrow_taken)) {
        expect_sane(typed);
      } else {
        EXPECT_TRUE(refused(typed, ACLNN_ERR_PARAM_INVALID, {"dtype"}));
      }
      tensor.dtype = ACL_FLOAT;
      tensor.format = static_cast<aclFormat>(value);
      const PhaseOne formatted = call.phase_one();
      if (formatted.status == ACLNN_SUCCESS) {
        const aclFormat legal[] = {ACL_FORMAT_NCHW, ACL_FORMAT_ND, ACL_FORMAT_NCDHW, ACL_FORMAT_NCL};
        EXPECT_NE(std::find(std::begin(legal), std::end(legal), *tensor.format), std::end(legal));
        EXPECT_EQ(aclDestroyAclOpExecutor(formatted.executor), ACLNN_SUCCESS);
      } else {
        EXPECT_TRUE(refused(formatted, ACLNN_ERR_PARAM_INVALID, {".format is "}));
      }
    }
  }
}

TYPED_TEST(BadInput, OfHandlesThatAreDeadForeignOrOfAnotherKind) {
  aclTensor* dead = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  ASSERT_EQ(aclDestroyTensor(dead), ACLNN_SUCCESS);
  const int64_t one = 1;
  aclIntArray* array = aclCreateIntArray(&one, 1);
  int64_t own[32] = {};
  const aclTensor* const wrong[] = {
      dead, reinterpret_cast<const aclTensor*>(array), reinterpret_cast<const aclTensor*>(own),
      reinterpret_cast<const aclTensor*>(uintptr_t{1}), reinterpret_cast<const aclTensor*>(UINTPTR_MAX)};
  for (size_t which = 0; which < this->tensor_count(); ++which) {
    for (const aclTensor* handle : wrong) {
      TypeParam call;
      this->tensors(call)[which]->instead = handle;
      EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_INNER_NULLPTR, {"expected a live aclTensor"})) << which;
    }
  }
  EXPECT_EQ(aclDestroyIntArray(array), ACLNN_SUCCESS);
}

TEST_F(AclTest, WildAttributesOfAConvolutionAreRefused) {
  for (const int64_t value : {kMin, int64_t{-1}, kMax, kMax / 2, int64_t{1} << 62}) {
    for (ArrayArg ConvCall::*attribute : {&ConvCall::stride, &ConvCall::padding, &ConvCall::dilation}) {
      for (size_t entry = 0; entry < 2; ++entry) {
        ConvCall call;
        (call.*attribute).values[entry] = value;
        SCOPED_TRACE(value);
        EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {}));
        call.transposed = true;
        EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {}));
      }
    }
    ConvCall call;
    call.padding = {value, value, value, value};
    EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {}));
  }
}

TEST_F(AclTest, WildAttributesOfPoolingAreRefused) {
  for (const int64_t value : {kMin, int64_t{-1}, kMax, kMax / 2, int64_t{1} << 62}) {
    for (ArrayArg PoolCall::*attribute : {&PoolCall::kernel_size, &PoolCall::stride, &PoolCall::padding}) {
      for (const bool ceil : {false, true}) {
        Pool2dCall call;
        call.ceil_mode = ceil;
        (call.*attribute).values[1] = value;
        EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {})) << value;
      }
    }
  }
}

TEST_F(AclTest, ArrayHandlesThatAreDeadForeignOrOfAnotherKindAreRefused) {
  aclIntArray* dead = aclCreateIntArray(nullptr, 0);
  ASSERT_EQ(aclDestroyIntArray(dead), ACLNN_SUCCESS);
  const bool flag = true;
  aclBoolArray* flags = aclCreateBoolArray(&flag, 1);
  for (const aclIntArray* handle :
       {const_cast<const aclIntArray*>(dead), reinterpret_cast<const aclIntArray*>(flags)}) {
    for (ArrayArg ConvCall::*attribute : {&ConvCall::bias_sizes, &ConvCall::stride, &ConvCall::padding,
                                          &ConvCall::dilation, &ConvCall::output_padding}) {
      ConvCall call;
      (call.*attribute).instead = handle;
      EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_INNER_NULLPTR, {"expected a live aclIntArray"}));
    }
    for (ArrayArg PoolCall::*attribute : {&PoolCall::kernel_size, &PoolCall::stride, &PoolCall::padding}) {
      Pool2dCall call;
      (call.*attribute).instead = handle;
      EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_INNER_NULLPTR, {"expected a live aclIntArray"}));
    }
  }
  ConvCall call;
  call.mask.instead = reinterpret_cast<const aclBoolArray*>(dead);
  EXPECT_TRUE(
      refused(call.phase_one(), ACLNN_ERR_INNER_NULLPTR, {"outputMask", "expected a live aclBoolArray"}));
  EXPECT_EQ(aclDestroyBoolArray(flags), ACLNN_SUCCESS);
}

template <class Call>
void expect_needs_a_runtime() {
  const Call call;
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_RUNTIME_ERROR, {"aclInit"}));
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_RUNTIME_ERROR, {"no current context", "aclrtSetDevice"}));
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(PhaseOneOfEveryOperator, NeedsAclInitAndADevice) {
  expect_needs_a_runtime<ConvCall>();
  expect_needs_a_runtime<TbcCall>();
  expect_needs_a_runtime<Pool2dCall>();
  expect_needs_a_runtime<Pool3dCall>();
}

TEST(PhaseOneOfEveryOperator, JudgesItsArgumentsBeforeTheRuntime) {
  ConvCall call;
  call.groups = 0;
  EXPECT_TRUE(refused(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {"groups is 0"}));
}

}  // namespace
}  // namespace retrograd::acl_test
