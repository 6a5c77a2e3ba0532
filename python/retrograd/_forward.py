# SPDX-License-Identifier: Apache-2.0
"""Forward functions for NumPy arrays, to check gradients with: without bias, and not made to be fast.

A convolution is what the gradient of a transposed one computes, and the other way round, so `conv` and `conv_tbc` run
on the engines of the backward passes. `avg_pool` is a loop over windows in float64.
"""
from __future__ import annotations

import itertools
import math as _math
from typing import Any

import numpy as np

from ._arrays import OWN, for_core, given_dtype, is_numpy, numpy_dtype
from ._backward import CONV, Ints, call, ints, math_number, paddings


def _spread(values: tuple[int, ...], axes: int, name: str) -> tuple[int, ...]:
    if len(values) not in (1, axes):
        raise ValueError(f"{name} has {len(values)} entries, expected 1 or {axes}")
    return values * axes if len(values) == 1 else values


def _pairs(values: tuple[int, ...], axes: int) -> list[tuple[int, int]]:
    if len(values) == 2 * axes and axes > 0:
        return [(values[2 * i], values[2 * i + 1]) for i in range(axes)]
    return [(v, v) for v in _spread(values, axes, "padding")]


def _check(input: Any, weight: Any) -> int:
    for name, array in (("input", input), ("weight", weight)):
        if not is_numpy(array):
            raise TypeError(f"{name} is of type {type(array).__name__}, expected a NumPy array")
    if input.ndim != weight.ndim or not 3 <= input.ndim <= 5:
        raise ValueError(f"input has {input.ndim} axes and weight {weight.ndim}, expected 3, 4 or 5 of both")
    return input.ndim - 2


def conv(input: np.ndarray, weight: np.ndarray, *, stride: Ints = 1, padding: Any = 0, dilation: Ints = 1,
         transposed: bool = False, output_padding: Ints = 0, groups: int = 1, math: str = "keep",
         dtype: str | None = None) -> np.ndarray:
    """The convolution itself, plain or transposed; the arguments are those of `conv_backward`.

    >>> import numpy as np, retrograd
    >>> retrograd.conv(np.arange(5, dtype="f").reshape(1, 1, 5), np.ones((1, 1, 3), "f")).tolist()
    [[[3.0, 6.0, 9.0]]]
    >>> retrograd.conv(np.ones((1, 1, 3), "f"), np.ones((1, 1, 2), "f"), stride=2, transposed=True).tolist()
    [[[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]]
    """
    axes = _check(input, weight)
    s, d = (_spread(ints(v, n), axes, n) for v, n in ((stride, "stride"), (dilation, "dilation")))
    extra = _spread(ints(output_padding, "output_padding"), axes, "output_padding")
    pads = _pairs(paddings(padding), axes)
    if min(s) < 1 or min(d) < 1 or min(min(p) for p in pads) < 0 or min(extra) < 0 or groups < 1:
        raise ValueError(f"stride {s}, dilation {d}, padding {pads}, output_padding {extra}, groups {groups}: "
                         "expected at least 1, 1, 0, 0, 1")
    if not transposed and any(extra):
        raise ValueError(f"output_padding is {extra}, expected 0 as the convolution is not transposed")
    reach = [d[i] * (weight.shape[2 + i] - 1) + 1 for i in range(axes)]
    kind = given_dtype(dtype)
    if transposed:
        return _transposed(input, weight, s, d, pads, extra, reach, groups, math, kind)
    size = [(input.shape[2 + i] + sum(pads[i]) - reach[i]) // s[i] + 1 for i in range(axes)]
    if min(size) < 1:
        raise ValueError(f"the kernel does not fit into the padded input: the output would be {tuple(size)}")
    result = np.empty((input.shape[0], weight.shape[0], *size), input.dtype)
    # The places behind the last window: what a transposed convolution calls its output padding.
    rest = [input.shape[2 + i] - ((size[i] - 1) * s[i] - sum(pads[i]) + reach[i]) for i in range(axes)]
    lists = ((), s, tuple(itertools.chain(*pads)), d, tuple(rest))
    call(CONV, (input, result, weight, result, None, None), kind, lists, (groups, 0, 0, 1, 0, 1, 0, math_number(math)),
         None)
    return result


def _transposed(input: np.ndarray, weight: np.ndarray, s: tuple[int, ...], d: tuple[int, ...],
                pads: list[tuple[int, int]], extra: tuple[int, ...], reach: list[int], groups: int, math: str,
                kind: int) -> np.ndarray:
    axes = len(s)
    steps = [(input.shape[2 + i] - 1) * s[i] + reach[i] for i in range(axes)]
    size = [steps[i] - sum(pads[i]) + extra[i] for i in range(axes)]
    if min(size) < 1:
        raise ValueError(f"the output would be {tuple(size)}, expected at least 1 along each axis")
    result = np.zeros((input.shape[0], weight.shape[1] * groups, *size), input.dtype)
    # A plain convolution of this output has the input's size if the padding behind is what its windows leave: places
    # beyond all windows stay 0.
    behind = [max(pads[i][1] - extra[i], 0) for i in range(axes)]
    inner = [min(size[i], steps[i] - pads[i][0]) for i in range(axes)]
    if min(inner) < 1:
        return result  # all windows lie in the padding
    part = result[(slice(None), slice(None), *(slice(0, n) for n in inner))]
    lists = ((), s, tuple(itertools.chain(*((pads[i][0], behind[i]) for i in range(axes)))), d, ())
    call(CONV, (input, part, weight, part, None, None), kind, lists, (groups, 0, 0, 0, 0, 1, 0, math_number(math)),
         None)
    return result


def conv_tbc(input: np.ndarray, weight: np.ndarray, *, pad: int = 0, math: str = "keep",
             dtype: str | None = None) -> np.ndarray:
    """The convolution along time of `conv_tbc_backward`.

    >>> import numpy as np, retrograd
    >>> retrograd.conv_tbc(np.ones((4, 1, 2), "f"), np.ones((3, 2, 1), "f"), pad=1)[:, 0, 0].tolist()
    [4.0, 6.0, 6.0, 4.0]
    """
    if _check(input, weight) != 1:
        raise ValueError(f"input has {input.ndim} axes, expected (T, B, C)")
    result = conv(input.transpose(1, 2, 0), weight.transpose(2, 1, 0), padding=pad, math=math, dtype=dtype)
    return np.ascontiguousarray(result.transpose(2, 0, 1))


def pool_size(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """How many windows there are along an axis."""
    count = (size + 2 * padding - kernel + (stride - 1 if ceil_mode else 0)) // stride + 1
    # In ceil mode the last window begins inside the input or the padding in front of it.
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def avg_pool(input: np.ndarray, kernel: Ints, *, stride: Ints | None = None, padding: Ints = 0,
             ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
             spatial_rank: int | None = None) -> np.ndarray:
    """Average pooling itself, window by window in float64: slow, for checking gradients.

    >>> import numpy as np, retrograd
    >>> retrograd.avg_pool(np.arange(6, dtype="f").reshape(1, 1, 6), 3).tolist()
    [[[1.0, 4.0]]]
    """
    if not is_numpy(input):
        raise TypeError(f"input is of type {type(input).__name__}, expected a NumPy array")
    for_core(input, "input", OWN)
    axes = input.ndim - 2 if not spatial_rank else spatial_rank
    if not 1 <= axes <= 3 or input.ndim - axes not in (1, 2):
        raise ValueError(f"input has {input.ndim} axes, expected (N, C) or (C) and one to three spatial ones")
    k, p = _spread(ints(kernel, "kernel"), axes, "kernel"), _spread(ints(padding, "padding"), axes, "padding")
    s = k if stride is None else _spread(ints(stride, "stride"), axes, "stride")
    if min(k) < 1 or min(s) < 1 or any(not 0 <= p[i] <= k[i] // 2 for i in range(axes)):
        raise ValueError(f"kernel {k}, stride {s}, padding {p}: expected at least 1, 1, and at most half the kernel")
    spatial = input.shape[-axes:]
    counts = [pool_size(spatial[i], k[i], s[i], p[i], ceil_mode) for i in range(axes)]
    if min(counts) < 1:
        raise ValueError("the kernel does not fit into the padded input")
    wide = input.astype(np.float64)
    result = np.empty((*input.shape[:-axes], *counts), np.float64)
    for place in itertools.product(*(range(n) for n in counts)):
        begin = [place[i] * s[i] - p[i] for i in range(axes)]
        end = [min(begin[i] + k[i], spatial[i] + p[i]) for i in range(axes)]
        counted = _math.prod(end[i] - begin[i] for i in range(axes))
        inside = [slice(max(begin[i], 0), min(end[i], spatial[i])) for i in range(axes)]
        if not count_include_pad:
            counted = _math.prod(r.stop - r.start for r in inside)
        total = wide[(..., *inside)].sum(axis=tuple(range(-axes, 0)))
        result[(..., *place)] = total / (divisor_override or counted)
    return result.astype(numpy_dtype(for_core(input, "input", OWN)[1], input))
