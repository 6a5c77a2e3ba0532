// SPDX-License-Identifier: Apache-2.0
// grad_weight with one channel a group, channels side by side in memory: channels last.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& depthwise_channels_grad_weight();

}  // namespace retrograd::engines::cpu
