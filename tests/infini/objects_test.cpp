// SPDX-License-Identifier: Apache-2.0
// Handles, tensor descriptors, operator descriptors: null, dead, foreign, twice destroyed, of another kind.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "infini/client.h"
#include "retrograd/infiniop_ext.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test {
namespace {

// What clients declare behind a handle and behind an operator descriptor.
struct Header {
  int device;
  int device_id;
};
Header header_of(const void* object) {
  Header header;
  std::memcpy(&header, object, sizeof header);
  return header;
}

TEST(InfiniopHandle, BeginsWithDeviceAndNumber) {
  const Handle handle;
  EXPECT_EQ(header_of(handle.get()).device, INFINI_DEVICE_CPU);
  EXPECT_EQ(header_of(handle.get()).device_id, 0);
}

TEST(InfiniopHandle, NullOutPointerIsABadParameter) {
  expect_refused(infiniopCreateHandle(nullptr), INFINI_STATUS_BAD_PARAM, "infiniopCreateHandle",
                 {"handle_ptr is null"});
}

TEST(InfiniopHandle, DestroyingNullDeadOrForeignOnesIsABadParameter) {
  expect_refused(infiniopDestroyHandle(nullptr), INFINI_STATUS_BAD_PARAM, "infiniopDestroyHandle",
                 {"handle is null"});
  infiniopHandle_t handle = nullptr;
  ASSERT_EQ(infiniopCreateHandle(&handle), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopDestroyHandle(handle), INFINI_STATUS_SUCCESS);
  expect_refused(infiniopDestroyHandle(handle), INFINI_STATUS_BAD_PARAM, "infiniopDestroyHandle",
                 {"not alive"});
  int foreign = 0;
  expect_refused(infiniopDestroyHandle(reinterpret_cast<infiniopHandle_t>(&foreign)), INFINI_STATUS_BAD_PARAM,
                 "infiniopDestroyHandle", {"not alive"});
  const TensorDescriptor tensor({{1}});
  expect_refused(infiniopDestroyHandle(reinterpret_cast<infiniopHandle_t>(tensor.get())),
                 INFINI_STATUS_BAD_PARAM, "infiniopDestroyHandle", {"not alive"});
}

TEST(InfiniopTensorDescriptor, NamesWhatCannotBeStored) {
  constexpr const char* kCreate = "infiniopCreateTensorDescriptor";
  const size_t sizes[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  infiniopTensorDescriptor_t out = nullptr;
  expect_refused(infiniopCreateTensorDescriptor(nullptr, 1, sizes, nullptr, INFINI_DTYPE_F32),
                 INFINI_STATUS_BAD_PARAM, kCreate, {"desc_ptr is null"});
  expect_refused(infiniopCreateTensorDescriptor(&out, 2, nullptr, nullptr, INFINI_DTYPE_F32),
                 INFINI_STATUS_BAD_PARAM, kCreate, {"shape is null", "2 sizes"});
  expect_refused(infiniopCreateTensorDescriptor(&out, 9, sizes, nullptr, INFINI_DTYPE_F32),
                 INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate, {"ndim is 9", "at most 8"});
  expect_refused(infiniopCreateTensorDescriptor(&out, SIZE_MAX, sizes, nullptr, INFINI_DTYPE_F32),
                 INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate, {"ndim is 18446744073709551615"});
  const size_t minus_one[2] = {1, SIZE_MAX};
  expect_refused(infiniopCreateTensorDescriptor(&out, 2, minus_one, nullptr, INFINI_DTYPE_F32),
                 INFINI_STATUS_BAD_TENSOR_SHAPE, kCreate, {"shape[1] is 18446744073709551615"});
  EXPECT_EQ(out, nullptr);
}

TEST(InfiniopTensorDescriptor, TakesRanks0To8AndAnyTypeForTheOperatorToJudge) {
  const size_t sizes[8] = {2, 0, SIZE_MAX / 2, 1, 1, 1, 1, 1};
  for (size_t rank = 0; rank <= 8; ++rank)
    for (int dtype : {-1, 0, 5, 13, 19, 20, 1000}) {
      infiniopTensorDescriptor_t descriptor = nullptr;
      EXPECT_EQ(infiniopCreateTensorDescriptor(&descriptor, rank, sizes, nullptr,
                                               static_cast<infiniDtype_t>(dtype)),
                INFINI_STATUS_SUCCESS);
      EXPECT_EQ(infiniopDestroyTensorDescriptor(descriptor), INFINI_STATUS_SUCCESS);
    }
  infiniopTensorDescriptor_t scalar = nullptr;
  EXPECT_EQ(infiniopCreateTensorDescriptor(&scalar, 0, nullptr, nullptr, INFINI_DTYPE_F32),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopDestroyTensorDescriptor(scalar), INFINI_STATUS_SUCCESS);
}

TEST(InfiniopTensorDescriptor, DestroyingNullDeadOrForeignOnesIsABadParameter) {
  constexpr const char* kDestroy = "infiniopDestroyTensorDescriptor";
  expect_refused(infiniopDestroyTensorDescriptor(nullptr), INFINI_STATUS_BAD_PARAM, kDestroy,
                 {"desc is null"});
  const size_t size = 1;
  infiniopTensorDescriptor_t descriptor = nullptr;
  ASSERT_EQ(infiniopCreateTensorDescriptor(&descriptor, 1, &size, nullptr, INFINI_DTYPE_F32),
            INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopDestroyTensorDescriptor(descriptor), INFINI_STATUS_SUCCESS);
  expect_refused(infiniopDestroyTensorDescriptor(descriptor), INFINI_STATUS_BAD_PARAM, kDestroy,
                 {"not alive"});
  const Handle handle;
  expect_refused(infiniopDestroyTensorDescriptor(reinterpret_cast<infiniopTensorDescriptor_t>(handle.get())),
                 INFINI_STATUS_BAD_PARAM, kDestroy, {"not alive"});
}

TEST(InfiniopDescriptor, KnowsItsDevice) {
  const Operator conv = make(ConvCall{}), pool = make(PoolCall{});
  for (struct InfiniopDescriptor* descriptor : {conv.get(), pool.get()}) {
    EXPECT_EQ(header_of(descriptor).device, INFINI_DEVICE_CPU);
    EXPECT_EQ(header_of(descriptor).device_id, 0);
    infiniDevice_t type = INFINI_DEVICE_ALI;
    int id = -1;
    EXPECT_EQ(infiniopGetDescriptorDeviceType(descriptor, &type), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(infiniopGetDescriptorDeviceId(descriptor, &id), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(type, INFINI_DEVICE_CPU);
    EXPECT_EQ(id, 0);
  }
}

TEST(InfiniopDescriptor, DeviceQueriesRefuseNullAndDeadOnes) {
  infiniDevice_t type = INFINI_DEVICE_ALI;
  int id = -1;
  expect_refused(infiniopGetDescriptorDeviceType(nullptr, &type), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetDescriptorDeviceType", {"desc_ptr is null"});
  expect_refused(infiniopGetDescriptorDeviceId(nullptr, &id), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetDescriptorDeviceId", {"desc_ptr is null"});
  const Operator conv = make(ConvCall{});
  expect_refused(infiniopGetDescriptorDeviceType(conv.get(), nullptr), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetDescriptorDeviceType", {"device_type is null"});
  expect_refused(infiniopGetDescriptorDeviceId(conv.get(), nullptr), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetDescriptorDeviceId", {"device_id is null"});
  int foreign = 0;
  const auto* dead = reinterpret_cast<const struct InfiniopDescriptor*>(&foreign);
  expect_refused(infiniopGetDescriptorDeviceType(dead, &type), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetDescriptorDeviceType", {"not alive"});
  expect_refused(infiniopGetDescriptorDeviceId(dead, &id), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetDescriptorDeviceId", {"not alive"});
  EXPECT_EQ(type, INFINI_DEVICE_ALI);
  EXPECT_EQ(id, -1);
}

TEST(InfiniopDescriptor, OneOfAnotherOperatorIsRefusedEverywhere) {
  const Operator conv = make(ConvCall{}), pool = make(PoolCall{});
  size_t bytes = 0;
  float data = 0;
  expect_refused(infiniopGetConvBackwardWorkspaceSize(pool.get(), &bytes), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetConvBackwardWorkspaceSize", {"infiniopAvgPoolBackward", "infiniopConvBackward"});
  expect_refused(infiniopGetAvgPoolBackwardWorkspaceSize(conv.get(), &bytes), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetAvgPoolBackwardWorkspaceSize", {"infiniopConvBackward"});
  expect_refused(infiniopConvBackward(pool.get(), room().data(), room().size(), &data, &data, &data, &data,
                                      &data, &data, nullptr),
                 INFINI_STATUS_BAD_PARAM, "infiniopConvBackward",
                 {"desc is a descriptor of infiniopAvgPoolBackward"});
  expect_refused(
      infiniopAvgPoolBackward(conv.get(), room().data(), room().size(), &data, &data, &data, nullptr),
      INFINI_STATUS_BAD_PARAM, "infiniopAvgPoolBackward", {"desc is a descriptor of infiniopConvBackward"});
  expect_refused(infiniopDestroyConvBackwardDescriptor(pool.get()), INFINI_STATUS_BAD_PARAM,
                 "infiniopDestroyConvBackwardDescriptor", {"desc"});
  expect_refused(infiniopDestroyAvgPoolBackwardDescriptor(conv.get()), INFINI_STATUS_BAD_PARAM,
                 "infiniopDestroyAvgPoolBackwardDescriptor", {"desc"});
}

TEST(InfiniopDescriptor, NullAndDeadOnesAreRefusedEverywhere) {
  infiniopConvBackwardDescriptor_t conv = nullptr;
  infiniopAvgPoolBackwardDescriptor_t pool = nullptr;
  size_t bytes = 77;
  float data = 0;
  const auto refuse_all = [&](const char* why) {
    SCOPED_TRACE(why);
    expect_refused(infiniopGetConvBackwardWorkspaceSize(conv, &bytes), INFINI_STATUS_BAD_PARAM,
                   "infiniopGetConvBackwardWorkspaceSize", {why});
    expect_refused(infiniopGetAvgPoolBackwardWorkspaceSize(pool, &bytes), INFINI_STATUS_BAD_PARAM,
                   "infiniopGetAvgPoolBackwardWorkspaceSize", {why});
    expect_refused(infiniopConvBackward(conv, room().data(), room().size(), &data, &data, &data, &data, &data,
                                        &data, nullptr),
                   INFINI_STATUS_BAD_PARAM, "infiniopConvBackward", {why});
    expect_refused(infiniopAvgPoolBackward(pool, room().data(), room().size(), &data, &data, &data, nullptr),
                   INFINI_STATUS_BAD_PARAM, "infiniopAvgPoolBackward", {why});
    expect_refused(infiniopDestroyConvBackwardDescriptor(conv), INFINI_STATUS_BAD_PARAM,
                   "infiniopDestroyConvBackwardDescriptor", {why});
    expect_refused(infiniopDestroyAvgPoolBackwardDescriptor(pool), INFINI_STATUS_BAD_PARAM,
                   "infiniopDestroyAvgPoolBackwardDescriptor", {why});
  };
  refuse_all("desc is null");
  ASSERT_EQ(ConvCall{}.create(&conv), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(PoolCall{}.create(&pool), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyConvBackwardDescriptor(conv), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyAvgPoolBackwardDescriptor(pool), INFINI_STATUS_SUCCESS);
  refuse_all("not alive");
  EXPECT_EQ(bytes, 77u);
}

TEST(InfiniopDescriptor, WorkspaceSizeNeedsAPlaceToGo) {
  const Operator conv = make(ConvCall{}), pool = make(PoolCall{});
  expect_refused(infiniopGetConvBackwardWorkspaceSize(conv.get(), nullptr), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetConvBackwardWorkspaceSize", {"size is null"});
  expect_refused(infiniopGetAvgPoolBackwardWorkspaceSize(pool.get(), nullptr), INFINI_STATUS_BAD_PARAM,
                 "infiniopGetAvgPoolBackwardWorkspaceSize", {"size is null"});
}

class CreateCalls : public testing::Test {
 protected:
  // Makes both operators' create calls and both extensions' with these arguments, and expects the same of
  // all.
  void expect_all(infiniStatus_t status, std::initializer_list<const char*> fragments) {
    size_t kernel[2] = {2, 2};
    const int64_t kernel64[2] = {2, 2};
    auto** const out = out_is_null ? nullptr : &descriptor_;
    expect_refused(infiniopCreateConvBackwardDescriptor(handle, out, conv[0], conv[1], conv[2], bias, nullptr,
                                                        nullptr, nullptr, 1),
                   status, "infiniopCreateConvBackwardDescriptor", fragments);
    expect_refused(
        retrogradInfiniopCreateConvBackwardDescriptor(handle, out, conv[0], conv[1], conv[2], bias, nullptr,
                                                      0, nullptr, nullptr, false, nullptr, 1),
        status, "retrogradInfiniopCreateConvBackwardDescriptor", fragments);
    if (conv[0] == nullptr || conv[1] == nullptr || conv[2] == nullptr || bias != bias_.get()) return;
    expect_refused(infiniopCreateAvgPoolBackwardDescriptor(handle, out, input_.get(), pooled_.get(),
                                                           input_.get(), kernel, nullptr, nullptr, false),
                   status, "infiniopCreateAvgPoolBackwardDescriptor", fragments);
    expect_refused(retrogradInfiniopCreateAvgPoolBackwardDescriptor(handle, out, input_.get(), pooled_.get(),
                                                                    input_.get(), kernel64, nullptr, nullptr,
                                                                    false, true, 0),
                   status, "retrogradInfiniopCreateAvgPoolBackwardDescriptor", fragments);
    EXPECT_EQ(descriptor_, nullptr);
  }

 private:
  const Handle handle_;
  const TensorDescriptor grad_output_{{{2, 6, 8, 8}}}, input_{{{2, 4, 10, 10}}}, weight_{{{6, 4, 3, 3}}},
      bias_{{{6}}}, pooled_{{{2, 4, 5, 5}}};
  struct InfiniopDescriptor* descriptor_ = nullptr;

 protected:
  infiniopHandle_t handle = handle_.get();
  infiniopTensorDescriptor_t conv[3] = {grad_output_.get(), input_.get(), weight_.get()};
  infiniopTensorDescriptor_t bias = bias_.get();
  bool out_is_null = false;
};

TEST_F(CreateCalls, RefuseANullHandle) {
  handle = nullptr;
  expect_all(INFINI_STATUS_BAD_PARAM, {"handle is null"});
}

TEST_F(CreateCalls, RefuseADeadHandle) {
  infiniopHandle_t dead = nullptr;
  ASSERT_EQ(infiniopCreateHandle(&dead), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyHandle(dead), INFINI_STATUS_SUCCESS);
  handle = dead;
  expect_all(INFINI_STATUS_BAD_PARAM, {"handle is", "not alive"});
}

TEST_F(CreateCalls, RefuseANullOutPointer) {
  out_is_null = true;
  expect_all(INFINI_STATUS_BAD_PARAM, {"desc_ptr is null"});
}

TEST_F(CreateCalls, RefuseEachNullTensor) {
  const char* const names[] = {"grad_output_desc is null", "input_desc is null", "weight_desc is null"};
  for (size_t i = 0; i < 3; ++i) {
    const auto kept = std::exchange(conv[i], nullptr);
    expect_all(INFINI_STATUS_BAD_PARAM, {names[i]});
    conv[i] = kept;
  }
}

TEST_F(CreateCalls, RefuseADeadBias) {
  const size_t size = 6;
  ASSERT_EQ(infiniopCreateTensorDescriptor(&bias, 1, &size, nullptr, INFINI_DTYPE_F32),
            INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyTensorDescriptor(bias), INFINI_STATUS_SUCCESS);
  expect_all(INFINI_STATUS_BAD_PARAM, {"bias_desc is", "not alive"});
}

// The client may write the two ints it reads: a handle for a device we do not run is one it made itself.
TEST_F(CreateCalls, RefuseDeviceTypesThatAreNotRun) {
  auto* header = reinterpret_cast<int*>(handle);
  for (int type = INFINI_DEVICE_CAMBRICON; type <= INFINI_DEVICE_TYPE_COUNT; ++type) {
    header[0] = type;
    const std::string is = "device type is " + std::to_string(type);
    expect_all(INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED, {is.c_str(), "CPU (0) or NVIDIA (1)"});
  }
  header[0] = INFINI_DEVICE_CPU;
  header[1] = 1;
  expect_all(INFINI_STATUS_DEVICE_NOT_FOUND, {"CPU 1 does not exist"});
  header[1] = 0;
}

TEST(PoolCreateCall, RefusesEachNullTensor) {
  const Handle handle;
  const TensorDescriptor wide({{1, 1, 4}}), narrow({{1, 1, 2}});
  size_t kernel = 2;
  infiniopAvgPoolBackwardDescriptor_t out = nullptr;
  const auto create = [&](infiniopTensorDescriptor_t grad_input, infiniopTensorDescriptor_t grad_output,
                          infiniopTensorDescriptor_t input) {
    return infiniopCreateAvgPoolBackwardDescriptor(handle.get(), &out, grad_input, grad_output, input,
                                                   &kernel, nullptr, nullptr, false);
  };
  constexpr const char* kCreate = "infiniopCreateAvgPoolBackwardDescriptor";
  expect_refused(create(nullptr, narrow.get(), wide.get()), INFINI_STATUS_BAD_PARAM, kCreate,
                 {"grad_input_desc is null"});
  expect_refused(create(wide.get(), nullptr, wide.get()), INFINI_STATUS_BAD_PARAM, kCreate,
                 {"grad_output_desc is null"});
  expect_refused(create(wide.get(), narrow.get(), nullptr), INFINI_STATUS_BAD_PARAM, kCreate,
                 {"input_desc is null"});
  EXPECT_EQ(out, nullptr);
}

TEST(Retrograd, TellsItsVersion) { EXPECT_STREQ(retrogradVersion(), PACKAGE_VERSION); }

}  // namespace
}  // namespace retrograd::infini_test
