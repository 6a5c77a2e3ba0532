// SPDX-License-Identifier: Apache-2.0
// The fields of a NumPy array, read where they lie: a buffer or a DLPack capsule for each array would take
// longer than a small problem.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace retrograd::python {

namespace nb = nanobind;

// The layout that NumPy's own macros (PyArray_DATA and its kin) compile into every extension module.
struct NumpyArray {
  PyObject head;
  char* data;
  int rank;
  Py_ssize_t *shape, *strides;  // strides in bytes
  PyObject *base, *dtype;
  int flags;

  bool is_writeable() const { return (flags & 0x400) != 0; }
};

// What the package tells when it is imported: the type of arrays, and float32 and float16 in the byte order
// of the machine. `probe` is np.empty((2, 3), np.float32): if it does not read like that, no array is read
// so.
void learn_numpy(nb::handle array_type, nb::handle f32, nb::handle f16, nb::handle probe);

// Null for everything but a plain array of float32 or float16; `dtype` becomes its retrogradDtype_t.
const NumpyArray* as_numpy(PyObject* object, int& dtype);

// Whether no result lies where an operand, or another result, may: by the ends of their memory. False where
// that cannot be told: an array is something else, or the ends overlap.
bool lie_apart(nb::tuple results, nb::tuple operands);

}  // namespace retrograd::python
