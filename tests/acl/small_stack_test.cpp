// SPDX-License-Identifier: Apache-2.0
// Calls of both interfaces on threads with little stack: as much as docs/aclnn.md and docs/infiniop.md ask
// for. A call that needs more runs into the guard page.
#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <string>

#include "infiniop.h"
#include "infinirt.h"
#include "run_call.h"
#include "sanitizers.h"

namespace retrograd::acl_test {
namespace {

// The documents': for release builds. Sanitizers make frames several times as large.
#ifdef RG_SANITIZER
constexpr size_t kStackBytes = 1 << 20;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

void* call(void* body) {
  (*static_cast<std::function<void()>*>(body))();
  return nullptr;
}

// Expectations belong outside of `body`: printing one takes stack, too.
void on_small_stack(std::function<void()> body) {
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  // On ARM no thread may have less than 128 KiB.
  const auto least = static_cast<size_t>(PTHREAD_STACK_MIN);
  ASSERT_EQ(pthread_attr_setstacksize(&small, std::max(kStackBytes, least)), 0);
  pthread_t thread = {};
  ASSERT_EQ(pthread_create(&thread, &small, call, &body), 0);
  pthread_attr_destroy(&small);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

class SmallStack : public AclTest {
 protected:
  // Both phases and the wait, all inputs zero.
  template <class Call>
  void expect_both_phases(Call call, const std::string& what) {
    SCOPED_TRACE(what);
    std::vector<std::vector<Values>> results;
    on_small_stack([&] {
      if (aclrtSetDevice(0) != ACL_SUCCESS) return;
      results.push_back(run(call, {}, stream_));
      results.push_back(run(call, {}, nullptr));
    });
    ASSERT_EQ(results.size(), 2u);
    for (const auto& outputs : results) {
      ASSERT_FALSE(outputs.empty());
      for (const Values& values : outputs) EXPECT_EQ(values, Values(values.size(), 0));
    }
  }
};

TEST_F(SmallStack, HoldsBothPhasesOfConvolutions) {
  expect_both_phases(ConvCall(), "2-D");
  for (const auto make : {make_1d, make_3d, make_transposed}) {
    ConvCall call;
    make(call);
    expect_both_phases(call, "another form");
  }
  for (const int groups : {1, 4, 16}) {
    ConvCall call;
    call.grad_output.shape = call.input.shape = call.grad_input.shape = {1, 16, 24, 24};
    call.weight.shape = call.grad_weight.shape = {16, 16 / groups, 3, 3};
    call.grad_bias.shape = {16};
    call.bias_sizes = {16};
    call.padding = {1, 1};
    call.groups = groups;
    for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
      for (TensorArg* tensor : {&call.grad_output, &call.input, &call.weight, &call.grad_input,
                                &call.grad_weight, &call.grad_bias})
        tensor->dtype = dtype;
      call.cube_math_type = dtype == ACL_FLOAT ? 1 : 0;
      expect_both_phases(call, std::to_string(groups) + " groups");
    }
  }
}

TEST_F(SmallStack, HoldsBothPhasesOfTheOtherOperators) {
  expect_both_phases(TbcCall(), "tbc");
  expect_both_phases(Pool2dCall(), "2-D pooling");
  expect_both_phases(Pool3dCall(), "3-D pooling");
}

// A refusal writes the problem's text into its message.
TEST_F(SmallStack, HoldsARefusal) {
  ConvCall call;
  call.grad_output.shape[3] = 7;
  PhaseOne result;
  on_small_stack([&] {
    if (aclrtSetDevice(0) == ACL_SUCCESS) result = call.phase_one();
  });
  EXPECT_TRUE(refused(result, ACLNN_ERR_PARAM_INVALID, {"gradOutput.shape[3] is 7", "reproduce: "}));
}

// With a null stream the engines run on the caller's stack.
TEST_F(SmallStack, HoldsRunsOfInfiniop) {
  std::vector<float> data(2 * 64 * 40 * 40), out(data.size(), 1), weight(64 * 64 * 9), more(weight.size(), 1);
  std::vector<char> workspace(64 << 20);
  for (const size_t groups : {size_t{1}, size_t{16}, size_t{64}}) {
    infiniStatus_t created = INFINI_STATUS_INTERNAL_ERROR, ran = created;
    on_small_stack([&] {
      const size_t places[4] = {2, 64, 40, 40}, kernel[4] = {64, 64 / groups, 3, 3};
      int ones[2] = {1, 1};
      infiniopHandle_t handle = nullptr;
      infiniopTensorDescriptor_t wide = nullptr, narrow = nullptr;
      infiniopConvBackwardDescriptor_t conv = nullptr;
      size_t bytes = 0;
      infiniopCreateHandle(&handle);
      infiniopCreateTensorDescriptor(&wide, 4, places, nullptr, INFINI_DTYPE_F32);
      infiniopCreateTensorDescriptor(&narrow, 4, kernel, nullptr, INFINI_DTYPE_F32);
      created = infiniopCreateConvBackwardDescriptor(handle, &conv, wide, wide, narrow, nullptr, ones, ones,
                                                     ones, groups);
      if (infiniopGetConvBackwardWorkspaceSize(conv, &bytes) == INFINI_STATUS_SUCCESS &&
          bytes <= workspace.size())
        ran = infiniopConvBackward(conv, workspace.data(), bytes, out.data(), more.data(), nullptr,
                                   data.data(), data.data(), weight.data(), nullptr);
      infiniopDestroyConvBackwardDescriptor(conv);
      infiniopDestroyTensorDescriptor(narrow);
      infiniopDestroyTensorDescriptor(wide);
      infiniopDestroyHandle(handle);
    });
    EXPECT_EQ(created, INFINI_STATUS_SUCCESS);
    EXPECT_EQ(ran, INFINI_STATUS_SUCCESS);
    EXPECT_EQ(out, data);
    out.assign(data.size(), 1);
  }
}

}  // namespace
}  // namespace retrograd::acl_test
