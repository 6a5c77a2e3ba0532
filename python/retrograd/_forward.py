# SPDX-License-Identifier: Apache-2.0
"""The forward functions: what the backward ones are the gradients of."""
from __future__ import annotations

import functools
from typing import Any

from ._arrays import check_apart, empty_in_order, given_dtype, zeros
from ._backward import (
    AVG_POOL_FORWARD, CONV_FORWARD, CONV_TBC_FORWARD, Ints, call, integer, ints, math_number, paddings, require_array,
)


def _spread(values: int | tuple[int, ...], axes: int, name: str) -> tuple[int, ...]:
    if isinstance(values, int):
        return (values,) * axes
    if len(values) not in (1, axes):
        raise ValueError(f"{name} has {len(values)} entries, expected 1 or {axes}")
    return values * axes if len(values) == 1 else values


def _pairs(values: int | tuple[int, ...], axes: int) -> list[tuple[int, int]]:
    if not isinstance(values, int) and len(values) == 2 * axes and axes > 0:
        return [(values[2 * i], values[2 * i + 1]) for i in range(axes)]
    return [(v, v) for v in _spread(values, axes, "padding")]


def _output(out: Any, shape: tuple[int, ...], **operands: Any) -> Any:
    """The array to write to: the one given, or a new one of the input's kind."""
    if out is None:
        return empty_in_order(shape, operands["input"], "input")
    require_array(out, "out")
    check_apart({"out": out}, {name: array for name, array in operands.items() if array is not None})
    return out


@functools.lru_cache(maxsize=4096)
def _conv_geometry(x: tuple[int, ...], w: tuple[int, ...], stride: Any, padding: Any, dilation: Any, output_padding: Any,
                   transposed: bool, groups: int) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The shape of the output, and the lists of a call."""
    if len(x) != len(w) or not 3 <= len(x) <= 5:
        raise ValueError(f"input has {len(x)} axes and weight {len(w)}, expected 3, 4 or 5 of both")
    axes = len(x) - 2
    s, d = _spread(stride, axes, "stride"), _spread(dilation, axes, "dilation")
    extra, pads = _spread(output_padding, axes, "output_padding"), _pairs(padding, axes)
    if min(s) < 1 or min(d) < 1 or min(min(p) for p in pads) < 0 or min(extra) < 0 or groups < 1:
        raise ValueError(f"stride {s}, dilation {d}, padding {pads}, output_padding {extra}, groups {groups}: "
                         "expected at least 1, 1, 0, 0, 1")
    size = []
    for i in range(axes):
        reach = d[i] * (w[2 + i] - 1) + 1
        size.append((x[2 + i] - 1) * s[i] + reach - sum(pads[i]) + extra[i] if transposed
                    else (x[2 + i] + sum(pads[i]) - reach) // s[i] + 1)
    if min(size) < 1:
        raise ValueError(f"the kernel does not fit into the padded input: the output would be {tuple(size)}")
    return ((x[0], w[1] * groups if transposed else w[0], *size),
            ((), s, tuple(number for pair in pads for number in pair), d, extra))


def conv(input: Any, weight: Any, bias: Any = None, *, stride: Ints = 1, padding: Any = 0, dilation: Ints = 1,
         transposed: bool = False, output_padding: Ints = 0, groups: int = 1, out: Any = None, math: str = "keep",
         dtype: str | None = None, stream: Any = None) -> Any:
    """The convolution itself, plain or transposed; `bias` is (C_out), added before the one rounding.

    A new result has the type, and the order of axes in memory, of `input`. The other arguments are those of
    `conv_backward`.

    >>> import numpy as np, retrograd
    >>> x, w = np.arange(5, dtype="f").reshape(1, 1, 5), np.ones((1, 1, 3), "f")
    >>> retrograd.conv(x, w).tolist(), retrograd.conv(x, w, np.array([0.5], "f")).tolist()
    ([[[3.0, 6.0, 9.0]]], [[[3.5, 6.5, 9.5]]])
    >>> retrograd.conv(np.ones((1, 1, 3), "f"), np.ones((1, 1, 2), "f"), stride=2, transposed=True).tolist()
    [[[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]]
    """
    require_array(input, "input")
    require_array(weight, "weight")
    if bias is not None:
        require_array(bias, "bias")
    kind = given_dtype(dtype)
    groups = integer(groups, "groups")
    shape, lists = _conv_geometry(
        tuple(input.shape), tuple(weight.shape), ints(stride, "stride"), paddings(padding), ints(dilation, "dilation"),
        ints(output_padding, "output_padding"), bool(transposed), groups)
    result = _output(out, shape, input=input, weight=weight, bias=bias)
    numbers = (groups, 0, 0, 1 if transposed else 0, 0, 1, 0, math_number(math))
    call(CONV_FORWARD, (None, input, weight, None, None, None, bias, result), kind, lists, numbers, stream)
    return result


def conv_tbc(input: Any, weight: Any, bias: Any = None, *, pad: int = 0, out: Any = None, math: str = "keep",
             dtype: str | None = None, stream: Any = None) -> Any:
    """The convolution along time of `conv_tbc_backward`.

    >>> import numpy as np, retrograd
    >>> x, w = np.ones((4, 1, 2), "f"), np.ones((3, 2, 1), "f")
    >>> retrograd.conv_tbc(x, w, np.array([10], "f"), pad=1)[:, 0, 0].tolist()
    [14.0, 16.0, 16.0, 14.0]
    """
    require_array(input, "input")
    require_array(weight, "weight")
    x, w = tuple(input.shape), tuple(weight.shape)
    if len(x) != 3 or len(w) != 3:
        raise ValueError(f"input has {len(x)} axes and weight {len(w)}, expected 3 of both: (T, B, C), (K, C_in, C_out)")
    steps = x[0] + 2 * integer(pad, "pad") - w[0] + 1
    if steps < 1:
        raise ValueError(f"the kernel does not fit into the padded input: the output would be of {steps} steps")
    if bias is None:
        bias = zeros((w[2],), input, "input")
    else:
        require_array(bias, "bias")
    result = _output(out, (steps, x[1], w[2]), input=input, weight=weight, bias=bias)
    call(CONV_TBC_FORWARD, (None, input, weight, None, None, None, bias, result), given_dtype(dtype),
         ((), (), pad, (), ()), (1, 0, 0, 0, 0, 1, 0, math_number(math)), stream)
    return result


def pool_size(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """How many windows there are along an axis."""
    count = (size + 2 * padding - kernel + (stride - 1 if ceil_mode else 0)) // stride + 1
    # In ceil mode the last window begins inside the input or the padding in front of it.
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def avg_pool(input: Any, kernel: Ints, *, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: int | None = None, spatial_rank: int | None = None,
             out: Any = None, dtype: str | None = None, stream: Any = None) -> Any:
    """Average pooling itself; the arguments are those of `avg_pool_backward`.

    >>> import numpy as np, retrograd
    >>> retrograd.avg_pool(np.arange(6, dtype="f").reshape(1, 1, 6), 3).tolist()
    [[[1.0, 4.0]]]
    """
    require_array(input, "input")
    x = tuple(input.shape)
    axes = len(x) - 2 if not spatial_rank else integer(spatial_rank, "spatial_rank")
    if not 1 <= axes <= 3 or len(x) - axes not in (1, 2):
        raise ValueError(f"input has {len(x)} axes, expected (N, C) or (C) and one to three spatial ones")
    k, p = _spread(ints(kernel, "kernel"), axes, "kernel"), _spread(ints(padding, "padding"), axes, "padding")
    s = k if stride is None else _spread(ints(stride, "stride"), axes, "stride")
    if min(k) < 1 or min(s) < 1 or any(not 0 <= p[i] <= k[i] // 2 for i in range(axes)):
        raise ValueError(f"kernel {k}, stride {s}, padding {p}: expected at least 1, 1, and at most half the kernel")
    if divisor_override is not None and integer(divisor_override, "divisor_override") == 0:
        raise ValueError("divisor_override is 0, expected another number, or None for the count of the window")
    counts = [pool_size(x[i - axes], k[i], s[i], p[i], ceil_mode) for i in range(axes)]
    if min(counts) < 1:
        raise ValueError("the kernel does not fit into the padded input")
    result = _output(out, (*x[:-axes], *counts), input=input)
    numbers = (1, divisor_override or 0, spatial_rank or 0, 0, 1 if ceil_mode else 0, 1 if count_include_pad else 0, 0, 0)
    call(AVG_POOL_FORWARD, (None, input, None, None, None, None, None, result), given_dtype(dtype), (k, s, p, (), ()),
         numbers, stream)
    return result
