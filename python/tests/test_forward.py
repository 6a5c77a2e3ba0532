# SPDX-License-Identifier: Apache-2.0
"""The forward functions: against formulas, and against the backward ones, which are their derivatives."""
import numpy as np
import pytest
from conftest import integers
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


def test_conv_tbc(random):
    x, w = integers(random, (7, 2, 3)), integers(random, (3, 3, 4))
    exact = convolved(x.transpose(1, 2, 0), w.transpose(2, 1, 0), dict(padding=1)).transpose(2, 0, 1)
    np.testing.assert_array_equal(retrograd.conv_tbc(x, w, pad=1), exact)


@pytest.mark.parametrize("attributes", [dict(), dict(stride=1, padding=1), dict(stride=3, ceil_mode=True),
                                        dict(padding=1, count_include_pad=False), dict(divisor_override=8)])
def test_pooling_is_linear(random, attributes):
    """<dy, pool(x)> = <pool_backward(dy), x>."""
    x = integers(random, (2, 3, 7, 8))
    y = retrograd.avg_pool(x, 2, **attributes)
    dy = integers(random, y.shape)
    dx = retrograd.avg_pool_backward(dy, x, 2, **attributes)
    assert np.vdot(dy, y) == pytest.approx(np.vdot(dx, x), rel=1e-6, abs=1e-4)


def test_refusals():
    x, w = np.ones((1, 2, 4), "f"), np.ones((3, 2, 3), "f")
    with pytest.raises(ValueError, match="does not fit"):
        retrograd.conv(x, w, dilation=4)
    with pytest.raises(TypeError, match="input is of type list"):
        retrograd.conv([1], w)
    with pytest.raises(ValueError, match="stride has 2 entries"):
        retrograd.conv(x, w, stride=(1, 1))
    with pytest.raises(ValueError, match="output_padding"):
        retrograd.conv(x, w, output_padding=1)
    with pytest.raises(ValueError, match="at most half the kernel"):
        retrograd.avg_pool(x, 2, padding=2)
