// SPDX-License-Identifier: Apache-2.0
// A convolution's gradients as a program asks the infiniop interface for them.
#pragma once

#include <memory>

#include "base/status.h"
#include "engines/engine.h"
#include "infiniop.h"
#include "infinirt.h"
#include "problem/request.h"

namespace retrograd::tools {

class InfiniCall {
 public:
  // Fails on what the interface has no words for: transposed convolutions, padding that differs at the two
  // ends, 8-bit types.
  static Result<InfiniCall> make(const problem::ConvRequest& request, const engines::Bindings& bindings);

  size_t workspace_bytes() const { return workspace_bytes_; }
  // On the null stream: when it returns the gradients are there.
  Status run(void* workspace);
  // On a stream of its own, and until they are there.
  Status run_on_stream(void* workspace);

 private:
  template <class T>
  using Owned = std::unique_ptr<T, infiniStatus_t (*)(T*)>;
  Status start(void* workspace, void* stream);

  Owned<InfiniopHandle> handle_{nullptr, infiniopDestroyHandle};
  Owned<InfiniopDescriptor> descriptor_{nullptr, infiniopDestroyConvBackwardDescriptor};
  std::unique_ptr<void, infiniStatus_t (*)(void*)> stream_{nullptr, infinirtStreamDestroy};
  engines::Bindings bindings_;
  size_t workspace_bytes_ = 0;
};

}  // namespace retrograd::tools
