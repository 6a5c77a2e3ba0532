# SPDX-License-Identifier: Apache-2.0
"""The Python package where it is installed: gradients with known numbers. Usage: try_wheel.py VERSION WITH-CUDA (yes, no)"""
import pathlib
import sys

import numpy as np

import retrograd

version, with_cuda = sys.argv[1:]


def ones(*shape):
    return np.ones(shape, "f")


def expect(what, got, expected):
    if not np.array_equal(got, np.asarray(expected, "f")):
        raise SystemExit(f"{what} is {got}, expected {expected}")


# Ones everywhere: an element's gradient is the number of windows that cover it.
dx, dw, db = retrograd.conv_backward(ones(1, 1, 4, 4), ones(1, 1, 4, 4), ones(1, 1, 3, 3), padding=1)
expect("grad_input", dx, [[[[4, 6, 6, 4], [6, 9, 9, 6], [6, 9, 9, 6], [4, 6, 6, 4]]]])
expect("grad_weight", dw, [[[[9, 12, 9], [12, 16, 12], [9, 12, 9]]]])
expect("grad_bias", db, [16])
# Numbers that differ, two channels, a stride: each product in its place.
x = np.arange(2 * 4, dtype="f").reshape(1, 2, 4)
w = np.array([[[1, 2], [3, 4]]], "f")
dy = np.array([[[1, 10]]], "f")
dx, dw, db = retrograd.conv_backward(dy, x, w, stride=2)
expect("grad_input", dx, [[[1, 2, 10, 20], [3, 4, 30, 40]]])
expect("grad_weight", dw, [[[20, 31], [64, 75]]])
expect("grad_bias", db, [11])
expect("pooling", retrograd.avg_pool_backward(ones(1, 1, 2, 2), ones(1, 1, 3, 3), 2, stride=1),
       [[[[0.25, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 0.25]]]])
try:
    retrograd.conv_backward(ones(1, 1, 4, 4), ones(1, 1, 4, 4), ones(1, 2, 3, 3), padding=1)
except ValueError:
    pass
else:
    raise SystemExit("a weight of two channels for an input of one was taken")

if retrograd.__version__ != version:
    raise SystemExit(f"the version is {retrograd.__version__}, expected {version}")
# Whether kernels for GPUs are in the library is told by its sections, with or without a GPU here.
library = pathlib.Path(retrograd.__file__).with_name("libretrograd.so.0").read_bytes()
if (b".nv_fatbin" in library) != (with_cuda == "yes"):
    raise SystemExit(f"expected kernels for GPUs in the library: {with_cuda}")
print(retrograd.info())
print(f"Python {sys.version.split()[0]}: retrograd {version}, CUDA code {with_cuda}: gradients right")
