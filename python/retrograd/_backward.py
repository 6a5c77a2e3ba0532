# SPDX-License-Identifier: Apache-2.0
"""The backward functions: sort the arguments, make room for results, call the extension module."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, SupportsIndex, Union

import numpy as np

from . import _core
from ._arrays import (
    E4M3, F32, HIF8, OWN, PLAIN, check_apart, dtype_number, empty, empty_like, float32_like, for_core, given_dtype, is_numpy,
    numpy_dtype, stream_number, workspace_maker,
)

Ints = Union[SupportsIndex, Sequence[SupportsIndex]]
CONV, CONV_TBC, AVG_POOL, CONV_FORWARD, CONV_TBC_FORWARD, AVG_POOL_FORWARD = range(6)
MATH = {"keep": 0, "reduced": 1, "f16": 2, "hf32": 3}
NAMES = ("grad_output", "input", "weight", "grad_input", "grad_weight", "grad_bias", "bias", "output")
ALL = (True, True, True)

_core.learn_numpy(np.ndarray, np.dtype(np.float32), np.dtype(np.float16), np.empty((2, 3), np.float32))


class Gradients(NamedTuple):
    """What a backward function returns: arrays, None for gradients that were not wanted."""

    grad_input: Any
    grad_weight: Any
    grad_bias: Any


def ints(value: Ints, name: str) -> int | tuple[int, ...]:
    """One number for all axes, or a list."""
    if type(value) is int:  # most are
        return value
    try:
        if hasattr(value, "__index__"):
            return (value.__index__(),)  # type: ignore[union-attr]
        return tuple(v.__index__() for v in value)  # type: ignore[union-attr]
    except (TypeError, AttributeError):
        raise TypeError(f"{name} is {value!r}, expected an integer or a sequence of them") from None


def integer(value: SupportsIndex, name: str) -> int:
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}, expected an integer")
    number = value.__index__()
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} is {number}, expected a number of 64 bits")
    return number


def paddings(value: Any) -> int | tuple[int, ...]:
    """One number, one an axis, or a pair (in front, behind) an axis."""
    if type(value) is int:
        return value
    if not hasattr(value, "__index__"):
        value = tuple(value)
        if any(not hasattr(v, "__index__") for v in value):
            if not all(isinstance(v, Iterable) and len(tuple(v)) == 2 for v in value):
                raise TypeError(f"padding is {value!r}, expected integers, or a pair for each axis")
            value = tuple(number for pair in value for number in pair)
    return ints(value, "padding")


def math_number(math: str) -> int:
    if math not in MATH:
        raise ValueError(f"math is {math!r}, expected one of {', '.join(MATH)}")
    return MATH[math]


def three(wanted: Any) -> tuple[bool, bool, bool]:
    if wanted is ALL:
        return ALL
    wanted = tuple(wanted)
    if len(wanted) != 3:
        raise ValueError(f"wanted has {len(wanted)} entries, expected 3: grad_input, grad_weight, grad_bias")
    return bool(wanted[0]), bool(wanted[1]), bool(wanted[2])


def given_results(out: Any, wanted: Sequence[bool]) -> tuple[Any, Any, Any]:
    """out= as three arrays or None."""
    if out is None:
        return None, None, None
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"out is of type {type(out).__name__}, expected a tuple of three arrays or None")
    if len(out) != 3:
        raise ValueError(f"out has {len(out)} entries, expected 3: grad_input, grad_weight, grad_bias")
    for name, result, is_wanted in zip(NAMES[3:6], out, wanted):
        if result is not None and not is_wanted:
            raise ValueError(f"out has a {name}, which is not wanted")
    return tuple(out)


def require_array(array: Any, name: str) -> None:
    if not is_numpy(array) and not hasattr(array, "__dlpack__"):
        raise TypeError(f"{name} is of type {type(array).__name__}, expected a NumPy array or one with __dlpack__")


def _require_operands(grad_output: Any, input: Any, weight: Any) -> None:
    if type(grad_output) is type(input) is type(weight) is np.ndarray:
        return
    for array, name in zip((grad_output, input, weight), NAMES):
        require_array(array, name)


def _is_8bit(array: Any, number: int) -> bool:
    if number != OWN or is_numpy(array):
        return number in (HIF8, E4M3)
    return "float8" in str(array.dtype)


def call(operation: int, arrays: tuple[Any, ...], dtype: int, lists: Any, numbers: Any, stream: Any) -> None:
    """Runs with all arrays, operands and results, in their order."""
    # Plain arrays are sorted by the extension module: a tiny problem takes less time than that would here.
    if stream is None and _core.run_plain(operation, arrays, lists, numbers):
        return
    borrowed, kinds = zip(*(for_core(array, name, dtype) for array, name in zip(arrays, NAMES)))
    input = arrays[1]
    _core.run(operation, borrowed, kinds, lists, numbers, stream_number(stream, input), workspace_maker(input))


def conv_results(grad_output: Any, input: Any, weight: Any, dtype: int, channels: int, wanted: Sequence[bool],
                 out: Any) -> list[Any]:
    """grad_input, grad_weight and grad_bias: those given, new ones where wanted, None otherwise."""
    if out is None and type(weight) is np.ndarray and weight.dtype in PLAIN and type(input) is np.ndarray:
        return [np.empty_like(input) if wanted[0] else None, np.empty_like(weight) if wanted[1] else None,
                np.empty(channels, weight.dtype) if wanted[2] else None]
    results = list(given_results(out, wanted))
    if out is not None:
        given = {name: array for name, array in zip(NAMES[3:6], results) if array is not None}
        check_apart(given, {"grad_output": grad_output, "input": input, "weight": weight})
    kind = dtype_number(weight, "weight", dtype)
    # Sums of 8-bit products do not go into 8 bits again, but for grad_input and HIFLOAT8's grad_weight.
    eight = _is_8bit(weight, kind)
    if wanted[0] and results[0] is None:
        results[0] = empty_like(input, "input")
    if wanted[1] and results[1] is None:
        results[1] = float32_like(weight, "weight") if eight and kind != HIF8 else empty_like(weight, "weight")
    if wanted[2] and results[2] is None:
        if eight:
            like = float32_like(weight, "weight")
            results[2] = empty((channels,), like, "weight", numpy_dtype(F32))
        else:
            results[2] = empty((channels,), weight, "weight", weight.dtype if is_numpy(weight) else None)
    return results


def conv_backward(grad_output: Any, input: Any, weight: Any, *, stride: Ints = 1, padding: Any = 0,
                  dilation: Ints = 1, transposed: bool = False, output_padding: Ints = 0, groups: int = 1,
                  wanted: Sequence[bool] = ALL, out: Any = None, math: str = "keep",
                  dtype: str | None = None, stream: Any = None) -> Gradients:
    """The gradients of a convolution in one to three dimensions, plain or transposed.

    grad_output, input
        (N, C, spatial…), with any strides.
    weight
        (C_out, C_in / groups, kernel…); of a transposed convolution (C_in, C_out / groups, kernel…).
    stride, dilation
        One number, or one for each axis.
    padding
        One number, one for each axis, or a pair (in front, behind) for each axis.
    output_padding
        Transposed convolutions: how many elements to add behind the output, any number.
    wanted
        Which of grad_input, grad_weight, grad_bias to compute.
    out
        Three arrays to write them to, with any strides that do not overlap; None for those to be made. New ones have
        the type, and the order of axes in memory, of input and weight.
    math
        How float32 is multiplied: "keep" as it is, "reduced" where a device may round operands to TF32 or HF32,
        "f16" and "hf32" rounded to that.
    dtype
        What unsigned integers hold: "f16", "bf16", "hif8" or "e4m3".
    stream
        CUDA arrays: the stream, as an object or a number. PyTorch's current one, or the default stream.

    >>> import numpy as np, retrograd
    >>> x, w, dy = np.ones((1, 1, 4, 4), "f"), np.ones((1, 1, 3, 3), "f"), np.ones((1, 1, 4, 4), "f")
    >>> dx, dw, db = retrograd.conv_backward(dy, x, w, padding=1)
    >>> dx[0, 0].astype(int).tolist()
    [[4, 6, 6, 4], [6, 9, 9, 6], [6, 9, 9, 6], [4, 6, 6, 4]]
    >>> float(db[0])
    16.0
    >>> retrograd.conv_backward(dy, x, w, padding=1, wanted=(False, True, False)).grad_input is None
    True
    >>> retrograd.conv_backward(dy, x, w)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: grad_output.shape[2] is 4, expected 2 = ...
    """
    _require_operands(grad_output, input, weight)
    kind = given_dtype(dtype)
    wanted = three(wanted)
    shape = weight.shape
    groups = integer(groups, "groups")
    channels = 0
    if len(shape) >= 2:
        channels = shape[1] * groups if transposed else shape[0]
    if channels < 0:  # groups below 1: refused with the rest of the problem
        channels = 0
    results = conv_results(grad_output, input, weight, kind, channels, wanted, out)
    lists = ((), ints(stride, "stride"), paddings(padding), ints(dilation, "dilation"),
             ints(output_padding, "output_padding"))
    numbers = (groups, 0, 0, 1 if transposed else 0, 0, 1, 0, math_number(math))
    call(CONV, (grad_output, input, weight, *results), kind, lists, numbers, stream)
    return Gradients(*results)


def conv_tbc_backward(grad_output: Any, input: Any, weight: Any, *, pad: int = 0,
                      wanted: Sequence[bool] = ALL, out: Any = None, math: str = "keep",
                      dtype: str | None = None, stream: Any = None) -> Gradients:
    """The gradients of a convolution along time: grad_output (T_out, B, C_out), input (T, B, C_in), weight (K, C_in, C_out).

    The other arguments are those of `conv_backward`.

    >>> import numpy as np, retrograd
    >>> x, w, dy = np.ones((5, 1, 2), "f"), np.ones((3, 2, 1), "f"), np.ones((5, 1, 1), "f")
    >>> dx, dw, db = retrograd.conv_tbc_backward(dy, x, w, pad=1)
    >>> dx[:, 0, 0].tolist()
    [2.0, 3.0, 3.0, 3.0, 2.0]
    >>> dw[:, 0, 0].tolist(), db.tolist()
    ([4.0, 5.0, 4.0], [5.0])
    """
    _require_operands(grad_output, input, weight)
    kind = given_dtype(dtype)
    wanted = three(wanted)
    shape = weight.shape
    channels = shape[2] if len(shape) == 3 else 0
    results = conv_results(grad_output, input, weight, kind, channels, wanted, out)
    lists = ((), (), (integer(pad, "pad"),), (), ())
    numbers = (1, 0, 0, 0, 0, 1, 0, math_number(math))
    call(CONV_TBC, (grad_output, input, weight, *results), kind, lists, numbers, stream)
    return Gradients(*results)


def avg_pool_backward(grad_output: Any, input: Any, kernel: Ints, *, stride: Ints | None = None, padding: Ints = 0,
                      ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
                      spatial_rank: int | None = None, out: Any = None, dtype: str | None = None,
                      stream: Any = None) -> Any:
    """The gradient of average pooling in one to three dimensions with regard to its input.

    Of `input` only shape, type and strides count. `stride` is the kernel unless given. With `spatial_rank` the batch
    axis may be missing. `out` is one array. The other arguments are those of `conv_backward`.

    >>> import numpy as np, retrograd
    >>> retrograd.avg_pool_backward(np.ones((1, 1, 2), "f"), np.empty((1, 1, 4), "f"), 2).tolist()
    [[[0.5, 0.5, 0.5, 0.5]]]
    >>> dy = np.ones((1, 1, 3), "f")
    >>> retrograd.avg_pool_backward(dy, np.empty((1, 1, 5), "f"), 2, padding=1, count_include_pad=False).tolist()
    [[[1.0, 0.5, 0.5, 0.5, 0.5]]]
    """
    require_array(grad_output, "grad_output")
    require_array(input, "input")
    kind = given_dtype(dtype)
    if divisor_override is not None and integer(divisor_override, "divisor_override") == 0:
        raise ValueError("divisor_override is 0, expected another number, or None for the count of the window")
    if out is not None:
        require_array(out, "out")
        check_apart({"out": out}, {"grad_output": grad_output})
    result = empty_like(input, "input") if out is None else out
    lists = (ints(kernel, "kernel"), () if stride is None else ints(stride, "stride"), ints(padding, "padding"), (), ())
    numbers = (1, integer(divisor_override or 0, "divisor_override"), integer(spatial_rank or 0, "spatial_rank"), 0,
               int(bool(ceil_mode)), int(bool(count_include_pad)), 0, 0)
    call(AVG_POOL, (grad_output, input, None, result, None, None), kind, lists, numbers, stream)
    return result
