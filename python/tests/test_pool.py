# SPDX-License-Identifier: Apache-2.0
"""Average pooling against the formula."""
import numpy as np
import pytest
from conftest import assert_exact, channels_last, integers, spread

import retrograd
from retrograd import _reference
from retrograd._forward import pool_size

SHAPES = [
    ((2, 3, 8), (2,), {}),
    ((2, 3, 9), (4,), dict(stride=(2,), padding=(2,))),
    ((2, 3, 8, 6), (2, 2), {}),
    ((2, 8, 9, 7), (4, 2), dict(stride=(3, 2), padding=(1, 1), ceil_mode=True)),
    ((1, 3, 7, 7), (4, 4), dict(stride=(2, 2), padding=(2, 1), count_include_pad=False, divisor_override=8)),
    ((1, 2, 4, 6, 5), (2, 2, 4), dict(stride=(2, 1, 1), padding=(1, 0, 2))),
]


@pytest.mark.parametrize("shape, kernel, attributes", SHAPES)
@pytest.mark.parametrize("layout", [np.asarray, channels_last, spread], ids=["dense", "channels_last", "spread"])
def test_values(random, dtype, layout, shape, kernel, attributes):
    """Divisors are powers of two, so that quotients are exact."""
    stride = attributes.get("stride", kernel)
    padding = attributes.get("padding", (0,) * len(kernel))
    ceil, include = attributes.get("ceil_mode", False), attributes.get("count_include_pad", True)
    divisor = attributes.get("divisor_override", 0)
    size = [pool_size(n, k, s, p, ceil) for n, k, s, p in zip(shape[2:], kernel, stride, padding)]
    dy = layout(integers(random, (*shape[:2], *size), dtype))
    x = layout(np.zeros(shape, dtype))
    exact = _reference.avg_pool_backward(dy, shape, kernel, stride, padding, include, divisor or 8)
    got = retrograd.avg_pool_backward(dy, x, kernel, **{**attributes, "divisor_override": divisor or 8})
    assert_exact(got, exact)
    # By the count of each window: rounded to the type twice at most.
    exact = _reference.avg_pool_backward(dy, shape, kernel, stride, padding, include, divisor)
    got = retrograd.avg_pool_backward(dy, x, kernel, **attributes)
    unit = 2.0 ** -{"float32": 23, "float16": 10, "bfloat16": 7}[dtype.name]
    assert np.abs(got.astype(np.float64) - exact).max() <= unit * max(1, np.abs(exact).max())


def test_without_a_batch(random):
    dy, x = integers(random, (3, 4, 4)), np.empty((3, 8, 8), np.float32)
    got = retrograd.avg_pool_backward(dy, x, 2, spatial_rank=2)
    np.testing.assert_array_equal(got, retrograd.avg_pool_backward(dy[None], x[None], 2)[0])


def test_out(random):
    dy, x = integers(random, (1, 3, 4)), np.empty((1, 3, 8), np.float32)
    out = np.full((1, 3, 16), 77, np.float32)[..., ::2]
    assert retrograd.avg_pool_backward(dy, x, 2, out=out) is out
    np.testing.assert_array_equal(out, np.repeat(dy / 2, 2, axis=-1))


def test_a_divisor_of_zero_is_refused():
    with pytest.raises(ValueError, match="divisor_override is 0"):
        retrograd.avg_pool_backward(np.ones((1, 1, 2), "f"), np.ones((1, 1, 4), "f"), 2, divisor_override=0)
