// SPDX-License-Identifier: Apache-2.0
// Borrows arrays, and gives them back.
#include "arrays.h"

#include <cstring>

#include "numpy_layout.h"

namespace retrograd::python {

const char* const kOperandNames[kOperands] = {"grad_output", "input",     "weight", "grad_input",
                                              "grad_weight", "grad_bias", "bias",   "output"};

namespace {

[[noreturn]] void raise(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  nb::raise_python_error();
}

// "3 retrogradCreatePlan: sentence" without what only a C programmer looks for.
std::string sentence() {
  const std::string text = retrogradGetLastError();
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

constexpr const char* kExpectedTypes = "float32, float16, bfloat16 or float8_e4m3fn";

constexpr int kNoType = -2;

// The type of `size` bytes that the caller says unsigned integers hold.
int given_type(int dtype, int64_t size) {
  const int64_t expected = dtype == RETROGRAD_F32                               ? 4
                           : dtype == RETROGRAD_HIF8 || dtype == RETROGRAD_E4M3 ? 1
                                                                                : 2;
  return size == expected ? dtype : kNoType;
}

int type_of_format(const char* format, int64_t size, int dtype) {
  if (format == nullptr) format = "B";
  if (*format == '<' || *format == '=' || *format == '@') ++format;
  if (std::strlen(format) != 1) return kNoType;
  if (*format == 'f') return RETROGRAD_F32;
  if (*format == 'e') return RETROGRAD_F16;
  if (std::strchr("BHI", *format) != nullptr && dtype != Array::kOwnType) return given_type(dtype, size);
  return kNoType;
}

int type_of(const dlpack::DataType& type, int dtype) {
  if (type.lanes != 1) return kNoType;
  if (type.code == dlpack::kFloat && type.bits == 32) return RETROGRAD_F32;
  if (type.code == dlpack::kFloat && type.bits == 16) return RETROGRAD_F16;
  if (type.code == dlpack::kBfloat && type.bits == 16) return RETROGRAD_BF16;
  if (type.code == dlpack::kFloat8E4m3fn && type.bits == 8) return RETROGRAD_E4M3;
  if (type.code == dlpack::kUint && dtype != Array::kOwnType) return given_type(dtype, type.bits / 8);
  return kNoType;
}

void check_rank(const char* name, int64_t rank) {
  if (rank <= Array::kMaxRank) return;
  raise(PyExc_ValueError, std::string(name) + " has " + std::to_string(rank) + " axes, expected at most " +
                              std::to_string(Array::kMaxRank));
}

// Older libraries know no max_version.
nb::object call_dlpack(nb::handle object, nb::dict arguments) {
  const nb::object method = object.attr("__dlpack__");
  nb::dict versioned;
  for (const auto& [key, value] : arguments) versioned[key] = value;
  versioned["max_version"] = nb::make_tuple(1, 1);
  try {
    return method(**versioned);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method(**arguments);
}

// Arrays on a GPU may offer a buffer, too, which they refuse to fill in (CuPy).
bool is_elsewhere(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__") || !nb::hasattr(object, "__dlpack_device__")) return false;
  const auto device = nb::cast<nb::tuple>(object.attr("__dlpack_device__")());
  const auto kind = nb::cast<int32_t>(nb::int_(device[0]));
  return kind != dlpack::kCpu && kind != dlpack::kCudaHost;
}

}  // namespace

void check(retrogradStatus_t status) {
  switch (status) {
    case RETROGRAD_OK:
      return;
    case RETROGRAD_BAD_DTYPE:
      raise(PyExc_TypeError, sentence());
    case RETROGRAD_OUT_OF_MEMORY:
      raise(PyExc_MemoryError, sentence());
    case RETROGRAD_INTERNAL_ERROR:
      raise(PyExc_RuntimeError, sentence());
    default:
      raise(PyExc_ValueError, sentence());
  }
}

void Array::borrow(nb::handle object, const char* name, int dtype, uint64_t stream, bool bytes_only) {
  release();
  if (!bytes_only && read_numpy(object, name)) return;
  if (PyObject_CheckBuffer(object.ptr()) != 0 && !is_elsewhere(object))
    return borrow_buffer(object, name, dtype, bytes_only);
  if (nb::hasattr(object, "__dlpack__")) return borrow_dlpack(object, name, dtype, stream, bytes_only);
  raise(PyExc_TypeError, std::string(name) + " is of type " + nb::type_name(object.type()).c_str() +
                             ", expected a NumPy array or one with __dlpack__");
}

// The caller's reference keeps the array.
bool Array::read_numpy(nb::handle object, const char* name) {
  int type = 0;
  const NumpyArray* const array = as_numpy(object.ptr(), type);
  if (array == nullptr) return false;
  const int64_t size = type == RETROGRAD_F32 ? 4 : 2;
  check_rank(name, array->rank);
  for (int i = 0; i < array->rank; ++i) {
    if (array->strides[i] % size != 0) return false;  // judged with the buffers
    shape_[static_cast<size_t>(i)] = array->shape[i];
    strides_[static_cast<size_t>(i)] = array->strides[i] / size;
  }
  read_only_ = !array->is_writeable();
  tensor_ = {array->data,     static_cast<retrogradDtype_t>(type),
             array->rank,     shape_.data(),
             strides_.data(), {RETROGRAD_CPU, 0}};
  return true;
}

void Array::borrow_buffer(nb::handle object, const char* name, int dtype, bool bytes_only) {
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) nb::raise_python_error();
  has_buffer_ = true;
  const int type = bytes_only ? int{RETROGRAD_F32} : type_of_format(buffer_.format, buffer_.itemsize, dtype);
  if (type == kNoType)
    raise(PyExc_TypeError, std::string(name) + " has elements of format '" +
                               (buffer_.format == nullptr ? "B" : buffer_.format) + "', expected " +
                               kExpectedTypes);
  check_rank(name, buffer_.ndim);
  Py_ssize_t dense = buffer_.itemsize;  // ctypes gives no strides, whatever it is asked for
  for (int i = buffer_.ndim - 1; i >= 0; --i) {
    const auto axis = static_cast<size_t>(i);
    const Py_ssize_t stride = buffer_.strides == nullptr ? dense : buffer_.strides[i];
    dense *= buffer_.shape[i];
    shape_[axis] = buffer_.shape[i];
    strides_[axis] = stride / buffer_.itemsize;
    if (stride % buffer_.itemsize != 0 && buffer_.shape[i] > 1)
      raise(PyExc_ValueError, std::string(name) + " has a stride of " + std::to_string(stride) +
                                  " bytes along axis " + std::to_string(i) +
                                  ", expected a multiple of its elements' " +
                                  std::to_string(buffer_.itemsize));
  }
  read_only_ = buffer_.readonly != 0;
  tensor_ = {buffer_.buf,     static_cast<retrogradDtype_t>(type),
             buffer_.ndim,    shape_.data(),
             strides_.data(), {RETROGRAD_CPU, 0}};
}

void Array::borrow_dlpack(nb::handle object, const char* name, int dtype, uint64_t stream, bool bytes_only) {
  const auto device = nb::cast<nb::tuple>(object.attr("__dlpack_device__")());
  const auto kind = nb::cast<int32_t>(nb::int_(device[0]));
  nb::dict arguments;
  if (kind == dlpack::kCuda || kind == dlpack::kCudaManaged)
    arguments["stream"] = stream == 0 ? uint64_t{1} : stream;  // 1: the legacy default stream
  const nb::object capsule = call_dlpack(object, arguments);
  // Whoever takes the tensor renames its capsule, and calls the deleter.
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    versioned_ =
        static_cast<dlpack::VersionedManaged*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    if (versioned_->major != 1)
      raise(PyExc_ValueError, std::string(name) + " comes as DLPack " + std::to_string(versioned_->major) +
                                  "." + std::to_string(versioned_->minor) +
                                  ", expected 1.x or the form before");
    read_only_ = (versioned_->flags & dlpack::kReadOnly) != 0;
    read(versioned_->tensor, name, dtype, bytes_only);
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0) {
    managed_ = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    read_only_ = false;
    read(managed_->tensor, name, dtype, bytes_only);
  } else {
    raise(PyExc_TypeError, std::string(name) + ".__dlpack__() gave no DLPack capsule");
  }
}

void Array::read(const dlpack::Tensor& tensor, const char* name, int dtype, bool bytes_only) {
  const int type = bytes_only ? int{RETROGRAD_F32} : type_of(tensor.dtype, dtype);
  if (type == kNoType)
    raise(PyExc_TypeError, std::string(name) + " has elements of DLPack type " +
                               std::to_string(tensor.dtype.code) + " with " +
                               std::to_string(tensor.dtype.bits) + " bits, expected " + kExpectedTypes);
  const bool cuda = tensor.device.type == dlpack::kCuda || tensor.device.type == dlpack::kCudaManaged;
  if (!cuda && tensor.device.type != dlpack::kCpu && tensor.device.type != dlpack::kCudaHost)
    raise(PyExc_ValueError, std::string(name) + " is on a device of DLPack type " +
                                std::to_string(tensor.device.type) + ", expected CPU (1) or CUDA (2)");
  check_rank(name, tensor.rank);
  int64_t dense = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    const auto axis = static_cast<size_t>(i);
    shape_[axis] = tensor.shape[i];
    strides_[axis] = tensor.strides == nullptr ? dense : tensor.strides[i];
    dense *= tensor.shape[i] > 0 ? tensor.shape[i] : 1;
  }
  tensor_ = {static_cast<char*>(tensor.data) + tensor.byte_offset,
             static_cast<retrogradDtype_t>(type),
             tensor.rank,
             shape_.data(),
             strides_.data(),
             {cuda ? RETROGRAD_CUDA : RETROGRAD_CPU, cuda ? tensor.device.id : 0}};
}

void Array::release() {
  tensor_ = {};
  if (has_buffer_) PyBuffer_Release(&buffer_);
  has_buffer_ = false;
  if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
  if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
  managed_ = nullptr;
  versioned_ = nullptr;
}

}  // namespace retrograd::python
