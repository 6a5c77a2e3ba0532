// SPDX-License-Identifier: Apache-2.0
// Array: one operand of a call, borrowed from whoever made it: NumPy and others through the buffer protocol,
// everything else through DLPack; plain NumPy arrays are read where they lie. Nothing is copied.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <string>

#include "dlpack.h"
#include "retrograd/retrograd.h"

namespace retrograd::python {

namespace nb = nanobind;

inline constexpr int kOperands = 8;
extern const char* const kOperandNames[kOperands];  // "grad_output", …

// Throws the Python exception of a status, with the library's sentence; nothing for RETROGRAD_OK.
void check(retrogradStatus_t status);

class Array {
 public:
  static constexpr int kMaxRank = 8;
  static constexpr int kOwnType = -1;

  Array() = default;
  ~Array() { release(); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // `dtype`: a retrogradDtype_t for what unsigned integers of its size hold, or kOwnType. `stream`: the
  // cudaStream_t on which the data will be used. `bytes_only`: a workspace, of which the address alone
  // counts.
  void borrow(nb::handle object, const char* name, int dtype, uint64_t stream, bool bytes_only = false);
  bool is_there() const { return tensor_.shape != nullptr; }
  const retrogradTensor_t* tensor() const { return is_there() ? &tensor_ : nullptr; }
  void* data() const { return tensor_.data; }
  bool read_only() const { return read_only_; }

 private:
  bool read_numpy(nb::handle object, const char* name);
  void borrow_buffer(nb::handle object, const char* name, int dtype, bool bytes_only);
  void borrow_dlpack(nb::handle object, const char* name, int dtype, uint64_t stream, bool bytes_only);
  void read(const dlpack::Tensor& tensor, const char* name, int dtype, bool bytes_only);
  void release();

  retrogradTensor_t tensor_{};
  std::array<int64_t, kMaxRank> shape_{}, strides_{};
  bool read_only_ = false;
  bool has_buffer_ = false;
  Py_buffer buffer_{};
  dlpack::Managed* managed_ = nullptr;
  dlpack::VersionedManaged* versioned_ = nullptr;
};

}  // namespace retrograd::python
