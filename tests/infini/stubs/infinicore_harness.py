#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What InfiniCore's Python test harness does with a library, on one that was built with its list of names.

Usage: infinicore_harness.py ROOT NAMES EXPORTS
ROOT/lib holds libinfiniop.so and libinfinirt.so, as INFINI_ROOT does; NAMES is the list, a name a line; EXPORTS what the
library has for real. Every name must be there; those that are not real answer NOT_IMPLEMENTED; convolution and pooling,
with arrays of the widths that the tests of InfiniCore pass, give known numbers.
"""
import ctypes
import pathlib
import sys
from ctypes import POINTER, byref, c_bool, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

root, names_file, exports_file = map(pathlib.Path, sys.argv[1:])
NOT_IMPLEMENTED, F32 = 2, 13
librt = ctypes.CDLL(str(root / "lib/libinfinirt.so"))
libop = ctypes.CDLL(str(root / "lib/libinfiniop.so"))
problems = []


def function(name, *argument_types):
    found = getattr(libop, name, None) or getattr(librt, name)
    found.restype, found.argtypes = c_int32, argument_types
    return found


def must(status, what):
    if status != 0:
        raise SystemExit(f"{what}: status {status}")


def check_names():
    names = [line for line in names_file.read_text().splitlines() if line]
    real = {line.split("#")[0].strip() for line in exports_file.read_text().splitlines()}
    stubs = [name for name in names if name not in real]
    for name in names:
        if not (hasattr(libop, name) or hasattr(librt, name)):
            problems.append(f"{name} is not there")
        elif name in stubs:
            size = c_size_t(7)
            status = function(name, c_void_p, c_void_p, c_size_t)(None, ctypes.cast(byref(size), c_void_p), 0)
            if status != NOT_IMPLEMENTED:
                problems.append(f"{name} answers {status}, expected {NOT_IMPLEMENTED}")
    for name in ("infiniopCreateGemmDescriptor", "infiniopRoPE", "infiniopDestroyMaxPoolBackwardDescriptor"):
        if name not in stubs:
            problems.append(f"{name} is no stub of the list")
    for name in ("infiniopConv", "infiniopAvgPoolBackward", "infiniopSetRuntimeDevice", "infinirtSetDevice"):
        if name not in names or name not in real:
            problems.append(f"{name} is not both listed and real")
    return len(names), len(stubs)


def tensor(*shape):
    create = function("infiniopCreateTensorDescriptor", POINTER(c_void_p), c_uint64, POINTER(c_uint64), POINTER(c_int64),
                      c_int)
    descriptor, strides = c_void_p(), [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    must(create(byref(descriptor), len(shape), (c_uint64 * len(shape))(*shape), (c_int64 * len(shape))(*strides), F32),
         "infiniopCreateTensorDescriptor")
    return descriptor


def array(kind, *values):
    return ctypes.cast((kind * len(values))(*values), c_void_p)


def run(handle, operator, tensors, attributes, memory):
    """The five calls of a test: create, destroy the tensors, size, run, destroy."""
    descriptor, size = c_void_p(), c_uint64(0)
    kinds = [type(value) if isinstance(value, (c_bool, c_size_t)) else c_void_p for value in attributes]
    create = function(f"infiniopCreate{operator}Descriptor", c_void_p, POINTER(c_void_p), *[c_void_p] * len(tensors), *kinds)
    must(create(handle, byref(descriptor), *tensors, *attributes), f"create {operator}")
    for each in filter(None, tensors):
        must(function("infiniopDestroyTensorDescriptor", c_void_p)(each), "infiniopDestroyTensorDescriptor")
    must(function(f"infiniopGet{operator}WorkspaceSize", c_void_p, POINTER(c_uint64))(descriptor, byref(size)), "size")
    workspace = ctypes.create_string_buffer(size.value) if size.value else None
    call = function(f"infiniop{operator}", c_void_p, c_void_p, c_size_t, *[c_void_p] * (len(memory) + 1))
    must(call(descriptor, workspace, size, *[ctypes.cast(m, c_void_p) for m in memory], None), operator)
    must(function(f"infiniopDestroy{operator}Descriptor", c_void_p)(descriptor), f"destroy {operator}")


def expect(what, values, expected):
    if list(values) != expected:
        problems.append(f"{what} is {list(values)}, expected {expected}")


def check_values(handle):
    """Ones everywhere: a 3 x 3 image, windows of 2 x 2; so the numbers count windows."""
    def ones(count):
        return (c_float * count)(*[1] * count)

    y, dx, dw, db = (c_float * 4)(), (c_float * 9)(), (c_float * 4)(), (c_float * 1)()
    attributes = [array(c_int64, 0, 0), array(c_int64, 1, 1), array(c_int64, 1, 1)]
    run(handle, "Conv", [tensor(1, 1, 2, 2), tensor(1, 1, 3, 3), tensor(1, 1, 2, 2), None], [*attributes, c_size_t(2)],
        [y, ones(9), ones(4), None])
    expect("Conv", y, [4, 4, 4, 4])

    attributes = [array(c_int, 0, 0), array(c_int, 1, 1), array(c_int, 1, 1)]
    run(handle, "ConvBackward", [tensor(1, 1, 2, 2), tensor(1, 1, 3, 3), tensor(1, 1, 2, 2), tensor(1)],
        [*attributes, c_size_t(1)], [dx, dw, db, ones(4), ones(9), ones(4)])
    expect("grad_input", dx, [1, 2, 1, 2, 4, 2, 1, 2, 1])
    expect("grad_weight", dw, [4, 4, 4, 4])
    expect("grad_bias", db, [4])

    attributes = [array(c_uint64, 2, 2), array(c_uint64, 1, 1), array(c_uint64, 0, 0), c_bool(False)]
    run(handle, "AvgPool", [tensor(1, 1, 2, 2), tensor(1, 1, 3, 3)], attributes, [y, ones(9)])
    expect("AvgPool", y, [1, 1, 1, 1])
    run(handle, "AvgPoolBackward", [tensor(1, 1, 3, 3), tensor(1, 1, 2, 2), tensor(1, 1, 3, 3)], attributes,
        [dx, ones(4), ones(9)])
    expect("AvgPoolBackward", dx, [0.25, 0.5, 0.25, 0.5, 1, 0.5, 0.25, 0.5, 0.25])


listed, stubs = check_names()
must(function("infiniopSetRuntimeDevice", c_int, c_int)(0, 0), "infiniopSetRuntimeDevice")
handle = c_void_p()
must(function("infiniopCreateHandle", POINTER(c_void_p))(byref(handle)), "infiniopCreateHandle")
check_values(handle)
must(function("infiniopDestroyHandle", c_void_p)(handle), "infiniopDestroyHandle")
print("\n".join(problems) or f"{listed} names: {stubs} answer NOT_IMPLEMENTED, {listed - stubs} are real; values right")
sys.exit(1 if problems else 0)
