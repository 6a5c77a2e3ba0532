// SPDX-License-Identifier: Apache-2.0
// Phase two: what it refuses leaves everything as it was; what it takes may be run again, elsewhere, and from
// threads.
#include <algorithm>
#include <functional>
#include <memory>

#include "allocation_counter.h"
#include "run_call.h"
#include "stream_gate.h"

namespace retrograd::acl_test {
namespace {

using testing::AllocationCounter;

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR, kInvalid = ACLNN_ERR_PARAM_INVALID;
constexpr aclnnStatus kDead = ACLNN_ERR_INNER_NULLPTR, kRuntime = ACLNN_ERR_RUNTIME_ERROR;

// A convolution with memory: 1x1 kernels over 64x64 places of 8 images, so that the sum of the bias gradient
// is long enough to be cut into chunks that need a workspace. All inputs are `value`.
struct LiveConv {
  explicit LiveConv(float value = 1) {
    call.grad_output.shape = call.input.shape = call.grad_input.shape = {8, 2, 64, 64};
    call.weight.shape = call.grad_weight.shape = {2, 2, 1, 1};
    call.grad_bias.shape = {2};
    call.bias_sizes = {2};
    for (TensorArg* tensor : call.inputs()) {
      blocks.push_back(std::make_unique<DeviceBlock>(encode(ACL_FLOAT, Values(elements(*tensor), value))));
      tensor->data = blocks.back()->get();
    }
    for (TensorArg* tensor : call.outputs()) {
      blocks.push_back(std::make_unique<DeviceBlock>(block_bytes(*tensor)));
      tensor->data = blocks.back()->get();
    }
  }
  static size_t elements(const TensorArg& tensor) { return static_cast<size_t>(count_of(tensor.shape)); }

  void plan_it() {
    plan = call.phase_one();
    ASSERT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
    ASSERT_GT(plan.workspace_size, 0u);
    workspace = std::make_unique<DeviceBlock>(static_cast<size_t>(plan.workspace_size));
  }
  aclnnStatus run_on(aclrtStream stream) const {
    return aclnnConvolutionBackward(workspace->get(), plan.workspace_size, plan.executor, stream);
  }
  bool outputs_untouched() const {
    return std::all_of(blocks.begin() + 3, blocks.end(), [](const auto& block) {
      const auto bytes = block->bytes();
      return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0xAA; });
    });
  }
  // gradInput is Σ over two channels, gradWeight Σ over batch and places, gradBias the same without the
  // input.
  void expect_outputs(float value) const {
    constexpr float kPlaces = 8 * 64 * 64;
    EXPECT_EQ(decode(ACL_FLOAT, blocks[3]->bytes()), Values(8 * 2 * 64 * 64, 2 * value * value));
    EXPECT_EQ(decode(ACL_FLOAT, blocks[4]->bytes()), Values(4, kPlaces * value * value));
    EXPECT_EQ(decode(ACL_FLOAT, blocks[5]->bytes()), Values(2, kPlaces * value));
  }

  ConvCall call;
  std::vector<std::unique_ptr<DeviceBlock>> blocks;  // three inputs, three outputs
  PhaseOne plan;
  std::unique_ptr<DeviceBlock> workspace;
};

class PhaseTwoTest : public AclTest {
 protected:
  // The call was refused, nothing was written, and the executor still runs.
  void expect_unharmed(LiveConv& conv) {
    ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
    EXPECT_TRUE(conv.outputs_untouched());
    EXPECT_EQ(conv.run_on(stream_), ACLNN_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    conv.expect_outputs(1);
  }
};

TEST_F(PhaseTwoTest, RefusesAnExecutorThatIsNullDeadOrOfAnotherKind) {
  LiveConv conv;
  conv.plan_it();
  const DeviceBlock& workspace = *conv.workspace;
  const uint64_t size = conv.plan.workspace_size;
  EXPECT_TRUE(failed_with(aclnnConvolutionBackward(workspace.get(), size, nullptr, stream_), kNull,
                          {"executor is null"}));
  for (void* wrong : {static_cast<void*>(this), stream_, static_cast<void*>(PhaseOne::poisoned())}) {
    EXPECT_TRUE(failed_with(
        aclnnConvolutionBackward(workspace.get(), size, static_cast<aclOpExecutor*>(wrong), stream_), kDead,
        {"executor is", "expected a live aclOpExecutor"}));
  }
  const std::vector<std::string> says = {"aclnnConvolutionBackwardGetWorkspaceSize made"};
  EXPECT_TRUE(
      failed_with(aclnnConvTbcBackward(workspace.get(), size, conv.plan.executor, stream_), kDead, says));
  EXPECT_TRUE(
      failed_with(aclnnAvgPool2dBackward(workspace.get(), size, conv.plan.executor, stream_), kDead, says));
  EXPECT_TRUE(
      failed_with(aclnnAvgPool3dBackward(workspace.get(), size, conv.plan.executor, stream_), kDead, says));
  expect_unharmed(conv);
}

TEST_F(PhaseTwoTest, ConsumesItsExecutor) {
  LiveConv conv;
  conv.plan_it();
  EXPECT_EQ(conv.run_on(stream_), ACLNN_SUCCESS);
  EXPECT_TRUE(failed_with(conv.run_on(stream_), kDead, {"executor is", "was destroyed"}));
  EXPECT_TRUE(failed_with(aclSetAclOpExecutorRepeatable(conv.plan.executor), kDead, {"executor is"}));
  EXPECT_TRUE(failed_with(aclDestroyAclOpExecutor(conv.plan.executor), kDead, {"executor is"}));
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  conv.expect_outputs(1);
}

TEST_F(PhaseTwoTest, RefusesAStreamThatIsDeadForeignOrOfAnotherKind) {
  LiveConv conv;
  conv.plan_it();
  aclrtStream dead = nullptr;
  ASSERT_EQ(aclrtCreateStream(&dead), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(dead), ACL_SUCCESS);
  for (const aclrtStream wrong :
       {dead, static_cast<aclrtStream>(this), static_cast<aclrtStream>(conv.plan.executor)}) {
    EXPECT_TRUE(failed_with(conv.run_on(wrong), kRuntime, {"stream is", "expected a live aclrtStream"}));
  }
  expect_unharmed(conv);
}

TEST_F(PhaseTwoTest, RefusesAWorkspaceThatIsNullOrOneByteShort) {
  LiveConv conv;
  conv.plan_it();
  const uint64_t size = conv.plan.workspace_size;
  aclOpExecutor* const executor = conv.plan.executor;
  EXPECT_TRUE(failed_with(aclnnConvolutionBackward(nullptr, size, executor, stream_), kNull,
                          {"workspace is null", "expected " + std::to_string(size)}));
  EXPECT_TRUE(
      failed_with(aclnnConvolutionBackward(nullptr, 0, executor, stream_), kNull, {"workspace is null"}));
  EXPECT_TRUE(
      failed_with(aclnnConvolutionBackward(conv.workspace->get(), size - 1, executor, stream_), kInvalid,
                  {"the workspace has " + std::to_string(size - 1), "at least " + std::to_string(size)}));
  const DeviceBlock small(static_cast<size_t>(size - 1));
  EXPECT_TRUE(
      failed_with(aclnnConvolutionBackward(small.get(), size, executor, stream_), kInvalid, {"workspace"}))
      << "the block is smaller than the caller says";
  expect_unharmed(conv);
}

TEST_F(PhaseTwoTest, RefusesOperandsWithoutData) {
  const char* const names[] = {"gradOutput", "input", "weight", "gradInput", "gradWeight", "gradBias"};
  const int64_t one = 1;
  aclTensor* any = aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  for (size_t i = 0; i < 6; ++i) {
    LiveConv conv;
    conv.plan_it();
    ASSERT_EQ(aclSetTensorAddr(conv.plan.executor, i, any, nullptr), ACLNN_SUCCESS);
    EXPECT_TRUE(failed_with(conv.run_on(stream_), kNull, {std::string(names[i]) + " has no data", "null"}));
    ASSERT_EQ(aclSetTensorAddr(conv.plan.executor, i, any, conv.blocks[i]->get()), ACLNN_SUCCESS);
    expect_unharmed(conv);
  }
  EXPECT_EQ(aclDestroyTensor(any), ACLNN_SUCCESS);
}

TEST_F(PhaseTwoTest, RefusesBlocksThatAreTooSmall) {
  const char* const names[] = {"gradOutput", "input", "weight", "gradInput", "gradWeight", "gradBias"};
  const int64_t one = 1;
  aclTensor* any = aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  for (size_t i = 0; i < 6; ++i) {
    LiveConv conv;
    conv.plan_it();
    const DeviceBlock small(conv.blocks[i]->bytes().size() - 1);
    ASSERT_EQ(aclSetTensorAddr(conv.plan.executor, i, any, small.get()), ACLNN_SUCCESS);
    EXPECT_TRUE(failed_with(conv.run_on(stream_), kInvalid, {names[i], "block"}));
    ASSERT_EQ(aclSetTensorAddr(conv.plan.executor, i, any, conv.blocks[i]->get()), ACLNN_SUCCESS);
    expect_unharmed(conv);
  }
  EXPECT_EQ(aclDestroyTensor(any), ACLNN_SUCCESS);
}

TEST_F(PhaseTwoTest, RefusesAnOffsetThatLeavesTheBlock) {
  for (const int64_t offset : {int64_t{4}, int64_t{-1}, int64_t{1} << 40, int64_t{-1} << 60}) {
    LiveConv conv;
    conv.call.weight.offset = offset;  // the storage is not said, so phase one cannot know
    conv.plan_it();
    EXPECT_TRUE(failed_with(conv.run_on(stream_), kInvalid, {"weight"})) << offset;
    EXPECT_EQ(aclDestroyAclOpExecutor(conv.plan.executor), ACLNN_SUCCESS);
  }
}

TEST_F(PhaseTwoTest, NeedsNoDataForWhatIsNotReadOrEmpty) {
  LiveConv conv;
  conv.call.mask.values = {0, 0, 1};
  conv.call.input.data = conv.call.weight.data = conv.call.grad_input.data = conv.call.grad_weight.data =
      nullptr;
  conv.plan_it();
  EXPECT_EQ(conv.run_on(stream_), ACLNN_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(decode(ACL_FLOAT, conv.blocks[5]->bytes()), Values(2, 8 * 64 * 64));
}

TEST_F(PhaseTwoTest, IsRefusedAfterFinalizeAndInTheNextLife) {
  LiveConv conv;
  conv.plan_it();
  void* const workspace = conv.workspace->get();
  const PhaseOne plan = conv.plan;
  conv.workspace.reset();
  conv.blocks.clear();
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  const auto run = [&](aclrtStream stream) {
    return aclnnConvolutionBackward(workspace, plan.workspace_size, plan.executor, stream);
  };
  EXPECT_TRUE(failed_with(run(stream_), kRuntime, {"aclInit"}));
  EXPECT_TRUE(failed_with(run(nullptr), kRuntime, {"aclInit"}));
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_TRUE(failed_with(run(stream_), kRuntime, {"stream is"}));
  EXPECT_TRUE(failed_with(run(nullptr), kRuntime, {"no current context"}));
  EXPECT_EQ(aclDestroyAclOpExecutor(plan.executor), ACLNN_SUCCESS);
}

TEST_F(PhaseTwoTest, RunsOnTheDefaultStreamAndOnStreamsOfOtherContexts) {
  LiveConv conv;
  conv.plan_it();
  EXPECT_EQ(conv.run_on(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  conv.expect_outputs(1);
  LiveConv other;
  other.plan_it();
  aclrtContext first = nullptr, second = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&first), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateContext(&second, 0), ACL_SUCCESS);
  EXPECT_EQ(other.run_on(stream_), ACLNN_SUCCESS) << "the same device, that is all that counts";
  ASSERT_EQ(aclrtSetCurrentContext(first), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  other.expect_outputs(1);
}

TEST_F(PhaseTwoTest, RunsARepeatableExecutorManyTimesWithOtherAddresses) {
  LiveConv conv;
  conv.plan_it();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(conv.plan.executor), ACLNN_SUCCESS);
  const int64_t one = 1;
  aclTensor* any = aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  std::vector<std::unique_ptr<LiveConv>> others;
  for (int i = 1; i <= 6; ++i) {
    others.push_back(std::make_unique<LiveConv>(static_cast<float>(i)));
    for (size_t t = 0; t < 3; ++t) {
      ASSERT_EQ(aclSetInputTensorAddr(conv.plan.executor, t, any, others.back()->blocks[t]->get()),
                ACLNN_SUCCESS);
      ASSERT_EQ(aclSetOutputTensorAddr(conv.plan.executor, t, any, others.back()->blocks[3 + t]->get()),
                ACLNN_SUCCESS);
    }
    ASSERT_EQ(conv.run_on(stream_), ACLNN_SUCCESS);
  }
  ASSERT_EQ(aclDestroyTensor(any), ACLNN_SUCCESS);
  ASSERT_EQ(aclDestroyAclOpExecutor(conv.plan.executor), ACLNN_SUCCESS) << "while its runs are pending";
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  for (int i = 1; i <= 6; ++i) others[static_cast<size_t>(i - 1)]->expect_outputs(static_cast<float>(i));
  EXPECT_TRUE(conv.outputs_untouched());
}

TEST_F(PhaseTwoTest, AppliesTheOffsetOfATensorToItsNewAddress) {
  LiveConv conv;
  conv.call.mask.values = {0, 0, 1};
  conv.call.grad_bias.offset = 1;
  conv.call.grad_bias.storage = {3};
  conv.plan_it();
  const DeviceBlock block(size_t{12});
  const int64_t one = 1;
  aclTensor* any = aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  ASSERT_EQ(aclSetOutputTensorAddr(conv.plan.executor, 2, any, block.get()), ACLNN_SUCCESS)
      << "what the mask leaves out keeps its number";
  ASSERT_EQ(aclDestroyTensor(any), ACLNN_SUCCESS);
  ASSERT_EQ(conv.run_on(stream_), ACLNN_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  const Values values = decode(ACL_FLOAT, block.bytes());
  EXPECT_EQ(values[1], 8 * 64 * 64);
  EXPECT_EQ(values[2], 8 * 64 * 64);
  EXPECT_EQ(block.bytes()[0], 0xAA);
}

TEST_F(PhaseTwoTest, RefusesAddressesForTensorsAndExecutorsThatAreNone) {
  LiveConv conv;
  conv.plan_it();
  aclOpExecutor* const executor = conv.plan.executor;
  const int64_t one = 1;
  aclTensor* any = aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  aclTensor* dead = aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  ASSERT_EQ(aclDestroyTensor(dead), ACLNN_SUCCESS);
  const struct {
    aclnnStatus (*set)(aclOpExecutor*, const size_t, aclTensor*, void*);
    size_t count;
  } kSetters[] = {{aclSetInputTensorAddr, 3}, {aclSetOutputTensorAddr, 3}, {aclSetTensorAddr, 6}};
  for (const auto& [set, count] : kSetters) {
    EXPECT_TRUE(failed_with(set(nullptr, 0, any, &any), kNull, {"executor is null"}));
    EXPECT_TRUE(failed_with(set(PhaseOne::poisoned(), 0, any, &any), kDead, {"executor is"}));
    EXPECT_TRUE(failed_with(set(executor, 0, nullptr, &any), kNull, {"tensor is null"}));
    EXPECT_TRUE(failed_with(set(executor, 0, dead, &any), kDead, {"tensor is"}));
    for (const size_t index : {count, SIZE_MAX}) {
      EXPECT_TRUE(failed_with(set(executor, index, any, &any), kInvalid,
                              {"index is " + std::to_string(index), "less than " + std::to_string(count)}));
    }
  }
  EXPECT_TRUE(failed_with(aclSetAclOpExecutorRepeatable(nullptr), kNull, {"executor is null"}));
  EXPECT_TRUE(failed_with(aclSetAclOpExecutorRepeatable(PhaseOne::poisoned()), kDead, {"executor is"}));
  EXPECT_EQ(aclDestroyTensor(any), ACLNN_SUCCESS);
  expect_unharmed(conv);
}

TEST_F(PhaseTwoTest, NumbersTheTensorsOfEveryOperator) {
  const int64_t one = 1;
  aclTensor* any = aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  const auto expect_counts = [&](const PhaseOne& plan, size_t inputs, size_t outputs) {
    ASSERT_EQ(plan.status, ACLNN_SUCCESS) << plan.message;
    EXPECT_EQ(aclSetInputTensorAddr(plan.executor, inputs - 1, any, nullptr), ACLNN_SUCCESS);
    EXPECT_EQ(aclSetInputTensorAddr(plan.executor, inputs, any, nullptr), kInvalid);
    EXPECT_EQ(aclSetOutputTensorAddr(plan.executor, outputs - 1, any, nullptr), ACLNN_SUCCESS);
    EXPECT_EQ(aclSetOutputTensorAddr(plan.executor, outputs, any, nullptr), kInvalid);
    EXPECT_EQ(aclDestroyAclOpExecutor(plan.executor), ACLNN_SUCCESS);
  };
  expect_counts(ConvCall().phase_one(), 3, 3);
  expect_counts(TbcCall().phase_one(), 4, 3);
  expect_counts(Pool2dCall().phase_one(), 2, 1);
  expect_counts(Pool3dCall().phase_one(), 2, 1);
  EXPECT_EQ(aclDestroyTensor(any), ACLNN_SUCCESS);
}

TEST_F(PhaseTwoTest, LetsTensorsBeDestroyedWhileItsWorkIsPending) {
  LiveConv conv;
  Handles* handles = new Handles;
  aclTensor *go = handles->tensor(conv.call.grad_output), *x = handles->tensor(conv.call.input);
  aclTensor *w = handles->tensor(conv.call.weight), *gx = handles->tensor(conv.call.grad_input);
  aclTensor *gw = handles->tensor(conv.call.grad_weight), *gb = handles->tensor(conv.call.grad_bias);
  const auto *sizes = handles->array(conv.call.bias_sizes), *ones = handles->array(conv.call.stride);
  const auto* zeros = handles->array(conv.call.padding);
  const auto* mask = handles->mask(conv.call.mask);
  PhaseOne plan;
  ASSERT_EQ(
      aclnnConvolutionBackwardGetWorkspaceSize(go, x, w, sizes, ones, zeros, ones, false, zeros, 1, mask, 0,
                                               gx, gw, gb, &plan.workspace_size, &plan.executor),
      ACLNN_SUCCESS);
  const DeviceBlock workspace(static_cast<size_t>(plan.workspace_size));
  StreamGate gate(stream_);
  ASSERT_EQ(aclnnConvolutionBackward(workspace.get(), plan.workspace_size, plan.executor, stream_),
            ACLNN_SUCCESS);
  delete handles;
  EXPECT_TRUE(conv.outputs_untouched()) << "phase two enqueues and returns";
  gate.open();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  conv.expect_outputs(1);
}

TEST_F(PhaseTwoTest, AllocatesNothing) {
  LiveConv conv;
  conv.plan_it();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(conv.plan.executor), ACLNN_SUCCESS);
  std::vector<LiveConv> once(3);  // executors that are consumed
  for (LiveConv& each : once) each.plan_it();
  ASSERT_EQ(conv.run_on(stream_), ACLNN_SUCCESS);  // the first may wake what sleeps
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  aclnnStatus statuses = 0;
  size_t allocations = 0;
  {
    const AllocationCounter counter;
    for (int i = 0; i < 10; ++i) statuses |= conv.run_on(stream_);
    for (LiveConv& each : once) statuses |= each.run_on(stream_);
    statuses |= aclrtSynchronizeStream(stream_);
    allocations = counter.count();
  }
  EXPECT_EQ(statuses, ACLNN_SUCCESS);
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(aclDestroyAclOpExecutor(conv.plan.executor), ACLNN_SUCCESS);
}

}  // namespace
}  // namespace retrograd::acl_test
