// SPDX-License-Identifier: Apache-2.0
// BusyStream: keeps a stream occupied for a while with real work, so that "not finished yet" can be seen.
#pragma once

#include <memory>

#include "run_call.h"

namespace retrograd::acl_test {

class BusyStream {
 public:
  // Measures its work once, on `stream`.
  explicit BusyStream(aclrtStream stream);
  ~BusyStream();
  // Puts work for about a fifth of a second on `stream`: far longer than it takes to make the calls that look
  // at it.
  void occupy(aclrtStream stream) const;

 private:
  std::unique_ptr<DeviceBlock> grad_output_, input_, weight_, grad_weight_, workspace_;
  PhaseOne plan_;
  int runs_ = 1;
};

}  // namespace retrograd::acl_test
