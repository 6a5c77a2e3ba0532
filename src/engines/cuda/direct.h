// SPDX-License-Identifier: Apache-2.0
// Every pass on a GPU, straight from its formula; refuses nothing and needs no workspace.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& direct();

}  // namespace retrograd::engines::cuda
