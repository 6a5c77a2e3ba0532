// SPDX-License-Identifier: Apache-2.0
// The place of a pass's result element in the caller's tensor, for messages.
#pragma once

#include <string>

#include "engines/reference/element.h"
#include "problem/request.h"

namespace retrograd::tools {

// "[0,3,2,1]"
std::string element_index(const problem::Request& request, const problem::Pass& pass,
                          const engines::reference::Index5& index);

}  // namespace retrograd::tools
