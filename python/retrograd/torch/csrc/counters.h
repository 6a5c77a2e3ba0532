// SPDX-License-Identifier: Apache-2.0
// What became of every call: taken, or left to PyTorch's own kernel, and why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "retrograd/retrograd.h"

namespace retrograd_torch {

enum class Op { kConvolutionBackward, kConvTbcBackward, kAvgPool2dBackward, kAvgPool3dBackward, kCount };

enum class Outcome {
  kTaken,
  kElementType,   // neither float32, float16 nor bfloat16
  kMixedTypes,    // operands of different element types
  kLayout,        // not a strided tensor, or of another device
  kRank,          // not 1, 2 or 3 spatial axes
  kEmpty,         // a tensor without elements
  kRefused,       // the planner says no; the sentence is kept
  kStockFaster,   // policy auto
  kNotDepthwise,  // policy depthwise
  kRecordsGraph,  // a graph of the gradient is wanted, and only the composite kernel records one
  kNoWorkspace,   // a GPU has no memory for a workspace
  kCount
};

const char* name_of(Op op);
const char* sentence_of(Outcome outcome);

void count(Op op, retrogradDeviceType_t device, Outcome outcome);
// Counts a refusal and keeps its sentence, one for each operator.
void count_refusal(Op op, retrogradDeviceType_t device, std::string_view sentence);
void reset_counts();
// Between the two, calls of this thread are no user's: taken ones are counted apart, and nothing else is.
void begin_probe();
uint64_t end_probe();
// {"convolution_backward": {"taken": 3, "fell_back": {"element type": 1}, "by_device": {"cpu": {"taken": 3,
// "fell_back": {"element type": 1}}}, "last_refusal": "…"}, …}. Devices without calls are left out.
std::string counts_as_json();

}  // namespace retrograd_torch
