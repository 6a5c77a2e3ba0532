// SPDX-License-Identifier: Apache-2.0
// The first layer of a network on waveforms.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& waveform();

}  // namespace retrograd::engines::cuda
