# SPDX-License-Identifier: Apache-2.0
"""The gradients from their formulas, in float64 and tap by tap: what `python -m retrograd.check` compares with.

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


def conv_backward(grad_output: np.ndarray, input: np.ndarray, weight: np.ndarray, stride: Sequence[int],
                  pads: Sequence[tuple[int, int]], dilation: Sequence[int], groups: int,
                  transposed: bool) -> Gradients:
    dy, x, w = (np.asarray(a).astype(np.float64) for a in (grad_output, input, weight))
    wide, narrow = (dy, x) if transposed else (x, dy)
    wide_grad, narrow_grad = np.zeros_like(wide), np.zeros_like(narrow)
    dw = np.zeros_like(w)
    per_narrow, per_wide = w.shape[0] // groups, w.shape[1]
    for g in range(groups):
        n_part = slice(g * per_narrow, (g + 1) * per_narrow)
        w_part = slice(g * per_wide, (g + 1) * per_wide)
        for tap in itertools.product(*(range(k) for k in w.shape[2:])):
            steps, places = _steps(narrow.shape[2:], tap, stride, dilation, pads, wide.shape[2:])
            a = narrow[(slice(None), n_part, *steps)]
            b = wide[(slice(None), w_part, *places)]
            kernel = w[(n_part, slice(None), *tap)]
            dw[(n_part, slice(None), *tap)] = np.einsum("nop,nip->oi", *(v.reshape(*v.shape[:2], -1) for v in (a, b)))
            wide_grad[(slice(None), w_part, *places)] += np.einsum("no...,oi->ni...", a, kernel)
            narrow_grad[(slice(None), n_part, *steps)] += np.einsum("ni...,oi->no...", b, kernel)
    db = dy.sum(axis=(0, *range(2, dy.ndim)))
    return Gradients(narrow_grad if transposed else wide_grad, dw, db)


def conv_tbc_backward(grad_output: np.ndarray, input: np.ndarray, weight: np.ndarray, pad: int) -> Gradients:
    dx, dw, db = conv_backward(grad_output.transpose(1, 2, 0), input.transpose(1, 2, 0), weight.transpose(2, 1, 0),
                               (1,), ((pad, pad),), (1,), 1, False)
    return Gradients(dx.transpose(2, 0, 1), dw.transpose(2, 1, 0), db)


def avg_pool_backward(grad_output: np.ndarray, input_shape: Sequence[int], kernel: Sequence[int],
                      stride: Sequence[int], padding: Sequence[int], count_include_pad: bool,
                      divisor_override: int) -> np.ndarray:
    axes = len(kernel)
    dy = np.asarray(grad_output).astype(np.float64)
    dx = np.zeros(tuple(input_shape), np.float64)
    size = input_shape[-axes:]
    for place in itertools.product(*(range(n) for n in dy.shape[-axes:])):
        counted, inside = 1, []
        for o, k, s, p, n in zip(place, kernel, stride, padding, size):
            begin, end = o * s - p, min(o * s - p + k, n + p)
            inside.append(slice(max(begin, 0), max(min(end, n), 0)))
            counted *= end - begin if count_include_pad else inside[-1].stop - inside[-1].start
        share = dy[(..., *place)] / (divisor_override or counted)
        dx[(..., *inside)] += share[(...,) + (None,) * axes]
    return dx
