# SPDX-License-Identifier: Apache-2.0
"""Outputs and gradients from their formulas, in float64 and tap by tap: what `python -m retrograd.check` compares with.

    position(o, t) = o·stride − pad + t·dilation

is the place of the wide side that tap t of step o touches; the wide side is the input of a plain convolution and the
output of a transposed one. docs/mathematics.md has the equations.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ._backward import Gradients


def _steps(steps: Sequence[int], tap: Sequence[int], stride: Sequence[int], dilation: Sequence[int],
           pads: Sequence[tuple[int, int]], wide: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The steps whose tap touches a place inside the wide side, and those places."""
    narrow, places = [], []
    for n, t, s, d, (lo, _), size in zip(steps, tap, stride, dilation, pads, wide):
        inside = [o for o in range(n) if 0 <= o * s - lo + t * d < size]
        begin, end = (inside[0], inside[-1] + 1) if inside else (0, 0)
        narrow.append(slice(begin, end))
        first = begin * s - lo + t * d
        places.append(slice(first, first + (end - begin - 1) * s + 1, s) if inside else slice(0, 0))
    return tuple(narrow), tuple(places)


def _sides(narrow: np.ndarray, wide: np.ndarray, weight: np.ndarray, stride: Sequence[int],
           pads: Sequence[tuple[int, int]], dilation: Sequence[int],
           groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The narrow side that the wide one gives, the wide side that the narrow one gives, and grad_weight of both."""
    from_wide, from_narrow, dw = np.zeros_like(narrow), np.zeros_like(wide), np.zeros_like(weight)
    per_narrow, per_wide = weight.shape[0] // groups, weight.shape[1]
    for g in range(groups):
        n_part = slice(g * per_narrow, (g + 1) * per_narrow)
        w_part = slice(g * per_wide, (g + 1) * per_wide)
        for tap in itertools.product(*(range(k) for k in weight.shape[2:])):
            steps, places = _steps(narrow.shape[2:], tap, stride, dilation, pads, wide.shape[2:])
            a = narrow[(slice(None), n_part, *steps)]
            b = wide[(slice(None), w_part, *places)]
            kernel = weight[(n_part, slice(None), *tap)]
            dw[(n_part, slice(None), *tap)] = np.einsum("nop,nip->oi", *(v.reshape(*v.shape[:2], -1) for v in (a, b)))
            from_narrow[(slice(None), w_part, *places)] += np.einsum("no...,oi->ni...", a, kernel)
            from_wide[(slice(None), n_part, *steps)] += np.einsum("ni...,oi->no...", b, kernel)
    return from_wide, from_narrow, dw


def conv_backward(grad_output: np.ndarray, input: np.ndarray, weight: np.ndarray, stride: Sequence[int],
                  pads: Sequence[tuple[int, int]], dilation: Sequence[int], groups: int,
                  transposed: bool) -> Gradients:
    dy, x, w = (np.asarray(a).astype(np.float64) for a in (grad_output, input, weight))
    narrow, wide = (x, dy) if transposed else (dy, x)
    from_wide, from_narrow, dw = _sides(narrow, wide, w, stride, pads, dilation, groups)
    db = dy.sum(axis=(0, *range(2, dy.ndim)))
    return Gradients(from_wide if transposed else from_narrow, dw, db)


def conv(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, output_shape: Sequence[int],
         stride: Sequence[int], pads: Sequence[tuple[int, int]], dilation: Sequence[int], groups: int,
         transposed: bool) -> np.ndarray:
    x, w = (np.asarray(a).astype(np.float64) for a in (input, weight))
    y = np.zeros(tuple(output_shape))
    narrow, wide = (x, y) if transposed else (y, x)
    from_wide, from_narrow, _ = _sides(narrow, wide, w, stride, pads, dilation, groups)
    y = from_narrow if transposed else from_wide
    return y if bias is None else y + bias.astype(np.float64).reshape(-1, *[1] * (y.ndim - 2))


def conv_tbc(input: np.ndarray, weight: np.ndarray, bias: np.ndarray, output_shape: Sequence[int],
             pad: int) -> np.ndarray:
    t, b, c = output_shape
    y = conv(input.transpose(1, 2, 0), weight.transpose(2, 1, 0), bias, (b, c, t), (1,), ((pad, pad),), (1,), 1, False)
    return y.transpose(2, 0, 1)


def conv_tbc_backward(grad_output: np.ndarray, input: np.ndarray, weight: np.ndarray, pad: int) -> Gradients:
    dx, dw, db = conv_backward(grad_output.transpose(1, 2, 0), input.transpose(1, 2, 0), weight.transpose(2, 1, 0),
                               (1,), ((pad, pad),), (1,), 1, False)
    return Gradients(dx.transpose(2, 0, 1), dw.transpose(2, 1, 0), db)


def _windows(places: Sequence[int], size: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
             padding: Sequence[int], count_include_pad: bool):
    """Each place of the output, the part of its window that lies inside the input, and what the window counts."""
    for place in itertools.product(*(range(n) for n in places)):
        counted, inside = 1, []
        for o, k, s, p, n in zip(place, kernel, stride, padding, size):
            begin, end = o * s - p, min(o * s - p + k, n + p)
            inside.append(slice(max(begin, 0), max(min(end, n), 0)))
            counted *= end - begin if count_include_pad else inside[-1].stop - inside[-1].start
        yield place, inside, counted


def avg_pool_backward(grad_output: np.ndarray, input_shape: Sequence[int], kernel: Sequence[int],
                      stride: Sequence[int], padding: Sequence[int], count_include_pad: bool,
                      divisor_override: int) -> np.ndarray:
    axes = len(kernel)
    dy = np.asarray(grad_output).astype(np.float64)
    dx = np.zeros(tuple(input_shape), np.float64)
    for place, inside, counted in _windows(dy.shape[-axes:], input_shape[-axes:], kernel, stride, padding,
                                           count_include_pad):
        share = dy[(..., *place)] / (divisor_override or counted)
        dx[(..., *inside)] += share[(...,) + (None,) * axes]
    return dx


def avg_pool(input: np.ndarray, output_shape: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
             padding: Sequence[int], count_include_pad: bool, divisor_override: int) -> np.ndarray:
    axes = len(kernel)
    x = np.asarray(input).astype(np.float64)
    y = np.zeros(tuple(output_shape), np.float64)
    for place, inside, counted in _windows(output_shape[-axes:], x.shape[-axes:], kernel, stride, padding,
                                           count_include_pad):
        y[(..., *place)] = x[(..., *inside)].sum(axis=tuple(range(-axes, 0))) / (divisor_override or counted)
    return y
