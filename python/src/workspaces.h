// SPDX-License-Identifier: Apache-2.0
// Workspace: host memory for one run. The last ones are kept: fresh pages cost more than many a run.
#pragma once

#include <cstddef>

namespace retrograd::python {

// To be made and destroyed by the holder of the GIL.
class Workspace {
 public:
  explicit Workspace(size_t bytes);  // throws std::bad_alloc
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

size_t kept_workspace_bytes();
void forget_workspaces();

}  // namespace retrograd::python
