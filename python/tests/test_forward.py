# SPDX-License-Identifier: Apache-2.0
"""The forward functions: against formulas, and against the backward ones, which are their derivatives."""
import numpy as np
import pytest
from conftest import DTYPES, assert_exact, channels_last, integers, spread
from test_conv import IDS, SHAPES, normal, output_shape

import retrograd


def convolved(x, w, attributes):
    """Element by element."""
    s, p, d, _, groups, transposed = normal(attributes, x.ndim - 2)
    y = np.zeros(output_shape(x.shape, w.shape, attributes))
    wide, narrow = (y, x) if transposed else (x, y)
    per_narrow, per_wide = w.shape[0] // groups, w.shape[1]
    for step in np.ndindex(*narrow.shape[2:]):
        for tap in np.ndindex(*w.shape[2:]):
            q = [step[i] * s[i] - p[i][0] + tap[i] * d[i] for i in range(len(s))]
            if any(not 0 <= q[i] < wide.shape[2 + i] for i in range(len(s))):
                continue
            for c in range(w.shape[0]):
                for i in range(per_wide):
                    other = c // per_narrow * per_wide + i
                    if transposed:
                        y[(slice(None), other, *q)] += x[(slice(None), c, *step)] * w[(c, i, *tap)]
                    else:
                        y[(slice(None), c, *step)] += x[(slice(None), other, *q)] * w[(c, i, *tap)]
    return y


@pytest.mark.parametrize("shape, weight, attributes", SHAPES, ids=IDS)
def test_conv(random, shape, weight, attributes):
    x, w = integers(random, shape), integers(random, weight)
    np.testing.assert_array_equal(retrograd.conv(x, w, **attributes), convolved(x, w, attributes))


@pytest.mark.parametrize("extra", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("padding", [0, 1, (0, 3), (2, 0)])
def test_output_padding_of_any_size(random, extra, padding):
    x, w = integers(random, (2, 3, 4)), integers(random, (3, 2, 3))
    attributes = dict(transposed=True, stride=2, dilation=2, output_padding=extra,
                      padding=padding if isinstance(padding, int) else (padding,))
    np.testing.assert_array_equal(retrograd.conv(x, w, **attributes), convolved(x, w, attributes))


@pytest.mark.parametrize("shape, weight, attributes", SHAPES, ids=IDS)
def test_gradients_are_derivatives(random, shape, weight, attributes):
    """<dy, conv(x + ex, w + ew) - conv(x, w)> = <dx, ex> + <dw, ew> + <dy, conv(ex, ew)>: all of it exact."""
    x, w, ex, ew = (integers(random, s) for s in (shape, weight, shape, weight))
    dy = integers(random, output_shape(shape, weight, attributes))
    dx, dw, _ = retrograd.conv_backward(dy, x, w, **attributes)
    f = lambda a, b: np.vdot(dy, retrograd.conv(a, b, **attributes))  # noqa: E731
    assert f(x + ex, w + ew) - f(x, w) == np.vdot(dx, ex) + np.vdot(dw, ew) + f(ex, ew)


@pytest.mark.parametrize("shape, weight, attributes", SHAPES, ids=IDS)
def test_bias(random, dtype, shape, weight, attributes):
    x, w = integers(random, shape, dtype), integers(random, weight, dtype)
    plain = retrograd.conv(x, w, **attributes)
    bias = integers(random, plain.shape[1:2], dtype)
    exact = convolved(x.astype("f"), w.astype("f"), attributes) + bias.astype("f").reshape(-1, *[1] * (x.ndim - 2))
    assert_exact(retrograd.conv(x, w, bias, **attributes), exact)


def test_bias_is_rounded_with_the_sum():
    """In float16 2048 + 1 would be 2048; the sum of both with the bias is 2050."""
    x, w = np.array([[[2048, 1]]], np.float16), np.ones((1, 1, 2), np.float16)
    assert retrograd.conv(x, w, np.ones(1, np.float16)).item() == 2050


@pytest.mark.parametrize("transposed", [False, True])
def test_layouts_and_results(random, transposed):
    x, w, b = integers(random, (2, 3, 6, 5)), integers(random, (3, 3, 3, 3)), integers(random, (3,))
    attributes = dict(padding=1, transposed=transposed)
    exact = retrograd.conv(x, w, b, **attributes)
    got = retrograd.conv(channels_last(x), spread(w), b[::-1].copy()[::-1], **attributes)
    np.testing.assert_array_equal(got, exact)
    assert got.strides == (360, 4, 60, 12), "the input's order of axes"
    out = spread(np.full(exact.shape, 77, "f"))
    assert retrograd.conv(x, w, b, out=out, **attributes) is out
    np.testing.assert_array_equal(out, exact)


def test_unsigned_integers_as_what_they_hold(random):
    x, w = integers(random, (1, 2, 5)), integers(random, (3, 2, 3))
    held = [a.astype(DTYPES["bfloat16"]).view(np.uint16) for a in (x, w)]
    got = retrograd.conv(*held, dtype="bf16")
    assert got.dtype == np.uint16
    np.testing.assert_array_equal(got.view(DTYPES["bfloat16"]).astype("f"), retrograd.conv(x, w))


def test_conv_tbc(random):
    x, w, b = integers(random, (7, 2, 3)), integers(random, (3, 3, 4)), integers(random, (4,))
    exact = convolved(x.transpose(1, 2, 0), w.transpose(2, 1, 0), dict(padding=1)).transpose(2, 0, 1)
    np.testing.assert_array_equal(retrograd.conv_tbc(x, w, pad=1), exact)
    np.testing.assert_array_equal(retrograd.conv_tbc(x, w, b, pad=1), exact + b)
    out = spread(np.zeros(exact.shape, "f"))
    assert retrograd.conv_tbc(x, w, b, pad=1, out=out) is out
    np.testing.assert_array_equal(out, exact + b)


def pooled(x, kernel, stride, padding, ceil_mode, include, divisor):
    """Window by window."""
    def windows(n):
        count = -(-(n + 2 * padding - kernel) // stride) if ceil_mode else (n + 2 * padding - kernel) // stride
        starts = [o * stride - padding for o in range(count + 1)]
        return [(a, min(a + kernel, n + padding)) for a in starts if a < n]

    rows, columns = windows(x.shape[-2]), windows(x.shape[-1])
    y = np.zeros((*x.shape[:-2], len(rows), len(columns)))
    for i, (top, bottom) in enumerate(rows):
        for j, (left, right) in enumerate(columns):
            part = x[..., max(top, 0):bottom, max(left, 0):right].astype(np.float64)
            count = (bottom - top) * (right - left) if include else part[0, 0].size
            y[..., i, j] = part.sum(axis=(-2, -1)) / (divisor or count)
    return y


@pytest.mark.parametrize("kernel, stride, padding, ceil_mode, include, divisor", [
    (2, 2, 0, False, True, None), (2, 1, 1, False, True, None), (2, 3, 0, True, True, None), (2, 2, 1, False, False, None),
    (2, 2, 0, False, True, 8), (4, 2, 2, True, False, None), (4, 3, 1, True, True, -2)])
def test_pooling(random, dtype, kernel, stride, padding, ceil_mode, include, divisor):
    x = integers(random, (2, 3, 7, 8), dtype)
    attributes = dict(stride=stride, padding=padding, ceil_mode=ceil_mode, count_include_pad=include, divisor_override=divisor)
    exact = pooled(x, kernel, stride, padding, ceil_mode, include, divisor)
    got = retrograd.avg_pool(x, kernel, **attributes)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol={"float32": 1e-6, "float16": 1e-3}.get(dtype.name, 8e-3),
                               atol=1e-6)
    np.testing.assert_array_equal(retrograd.avg_pool(channels_last(x), kernel, **attributes), got)
    np.testing.assert_array_equal(retrograd.avg_pool(x[0], kernel, spatial_rank=2, **attributes), got[0])


@pytest.mark.parametrize("attributes", [dict(), dict(stride=1, padding=1), dict(stride=3, ceil_mode=True),
                                        dict(padding=1, count_include_pad=False), dict(divisor_override=8)])
def test_pooling_is_linear(random, attributes):
    """<dy, pool(x)> = <pool_backward(dy), x>."""
    x = integers(random, (2, 3, 7, 8))
    y = retrograd.avg_pool(x, 2, **attributes)
    dy = integers(random, y.shape)
    dx = retrograd.avg_pool_backward(dy, x, 2, **attributes)
    assert np.vdot(dy, y) == pytest.approx(np.vdot(dx, x), rel=1e-6, abs=1e-4)


def test_plans_of_forward_problems(random):
    x, w, b = integers(random, (2, 3, 6, 5)), integers(random, (4, 3, 3, 3)), integers(random, (4,))
    plan = retrograd.plan("conv input=2x3x6x5 weight=4x3x3x3 padding=1x1 bias=4 forward=1")
    assert set(plan.tensors) == {"input", "weight", "bias", "output"}
    exact = retrograd.conv(x, w, b, padding=1)
    np.testing.assert_array_equal(plan(input=x, weight=w, bias=b), exact)
    out = plan.empty("output")
    assert plan(input=x, weight=w, bias=b, out=out) is out
    np.testing.assert_array_equal(out, exact)
    with pytest.raises(ValueError, match="bias has no data"):
        plan(input=x, weight=w)
    with pytest.raises(ValueError, match="grad_output is given, and the plan has none"):
        plan(exact, x, w, b)
    with pytest.raises(ValueError, match="out shares memory with input|output shares memory with input"):
        plan(input=x, weight=w, bias=b, out=x)


X, W = np.ones((1, 2, 4), "f"), np.ones((3, 2, 3), "f")
READ_ONLY = np.empty((1, 3, 2), "f")
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize("error, words, change", [
    (ValueError, "does not fit", dict(dilation=4)),
    (TypeError, "input is of type list", dict(input=[1])),
    (TypeError, "weight is of type NoneType", dict(weight=None)),
    (TypeError, "bias is of type float", dict(bias=1.5)),
    (TypeError, "input has the dtype float64", dict(input=X.astype(float))),
    (TypeError, "bias has the dtype int64", dict(bias=np.ones(3, int))),
    (ValueError, "bias.shape", dict(bias=np.ones(4, "f"))),
    (ValueError, "input has 2 axes and weight 3", dict(input=X[0])),
    (ValueError, "stride has 2 entries", dict(stride=(1, 1))),
    (ValueError, "stride", dict(stride=0)),
    (ValueError, "stride has a number beyond 64 bits|does not fit", dict(stride=2**70)),
    (ValueError, "output_padding", dict(output_padding=1)),
    (ValueError, "groups", dict(groups=2)),
    (TypeError, "groups is 'x'", dict(groups="x")),
    (ValueError, "math is 'fast'", dict(math="fast")),
    (ValueError, "output is read-only", dict(out=READ_ONLY)),
    (ValueError, r"output.shape\[2\] is 3, expected 2", dict(out=np.empty((1, 3, 3), "f"))),
    (TypeError, "output has the dtype float64", dict(out=np.empty((1, 3, 2)))),
    (TypeError, "out is of type tuple", dict(out=(X,))),
    (ValueError, "out shares memory with weight", dict(out=W[:1, :, :])),
])
def test_refused(error, words, change):
    with pytest.raises(error, match=words):
        retrograd.conv(**{"input": X, "weight": W, **change})


def test_other_refusals():
    with pytest.raises(ValueError, match="at most half the kernel"):
        retrograd.avg_pool(X, 2, padding=2)
    with pytest.raises(ValueError, match="divisor_override is 0"):
        retrograd.avg_pool(X, 2, divisor_override=0)
    with pytest.raises(TypeError, match="input is of type str"):
        retrograd.avg_pool("x", 2)
    with pytest.raises(ValueError, match="expected 3 of both"):
        retrograd.conv_tbc(X[0], W)
    with pytest.raises(ValueError, match="of -1 steps"):
        retrograd.conv_tbc(X, W)
    with pytest.raises(TypeError, match="pad is 0.5"):
        retrograd.conv_tbc(X, W, pad=0.5)
