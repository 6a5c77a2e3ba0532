// SPDX-License-Identifier: Apache-2.0
#include "numpy_layout.h"

#include "retrograd/retrograd.h"

namespace retrograd::python {
namespace {

// Held for as long as the interpreter runs. Types and dtypes are compared by identity: others take the long
// way.
struct Known {
  PyObject *array_type = nullptr, *f32 = nullptr, *f16 = nullptr;
} known;

struct Ends {
  const char *begin, *end;
  bool meets(const Ends& other) const { return begin < other.end && other.begin < end; }
};

bool ends_of(PyObject* object, Ends& ends) {
  int dtype = 0;
  const NumpyArray* const array = as_numpy(object, dtype);
  if (array == nullptr) return false;
  ends = {array->data, array->data + (dtype == RETROGRAD_F32 ? 4 : 2)};
  for (int i = 0; i < array->rank; ++i) {
    if (array->shape[i] == 0) return ends.end = ends.begin, true;
    const Py_ssize_t reach = (array->shape[i] - 1) * array->strides[i];
    (reach < 0 ? ends.begin : ends.end) += reach;
  }
  return true;
}

}  // namespace

bool lie_apart(nb::tuple results, nb::tuple operands) {
  Ends result{}, other{};
  for (size_t i = 0; i < results.size(); ++i) {
    if (!ends_of(results[i].ptr(), result)) return false;
    for (const nb::handle operand : operands)
      if (!ends_of(operand.ptr(), other) || result.meets(other)) return false;
    for (size_t j = 0; j < i; ++j)
      if (!ends_of(results[j].ptr(), other) || result.meets(other)) return false;
  }
  return true;
}

void learn_numpy(nb::handle array_type, nb::handle f32, nb::handle f16, nb::handle probe) {
  const auto* const array = reinterpret_cast<const NumpyArray*>(probe.ptr());
  const bool same = reinterpret_cast<PyObject*>(Py_TYPE(probe.ptr())) == array_type.ptr() &&
                    array->rank == 2 && array->dtype == f32.ptr() && array->shape[0] == 2 &&
                    array->shape[1] == 3 && array->strides[0] == 12 && array->strides[1] == 4 &&
                    array->is_writeable();
  if (!same) return;
  known = {array_type.inc_ref().ptr(), f32.inc_ref().ptr(), f16.inc_ref().ptr()};
}

const NumpyArray* as_numpy(PyObject* object, int& dtype) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != known.array_type) return nullptr;
  const auto* const array = reinterpret_cast<const NumpyArray*>(object);
  if (array->dtype != known.f32 && array->dtype != known.f16) return nullptr;
  dtype = array->dtype == known.f32 ? RETROGRAD_F32 : RETROGRAD_F16;
  return array;
}

}  // namespace retrograd::python
