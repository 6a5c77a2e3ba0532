# SPDX-License-Identifier: Apache-2.0
"""Convolutions against the formula, exactly on small integers."""
import itertools

import ml_dtypes
import numpy as np
import pytest
from conftest import assert_exact, channels_last, integers, spread

import retrograd
from retrograd import _reference

# input, weight, attributes; of transposed ones the output follows.
SHAPES = [
    ((2, 3, 7), (4, 3, 3), {}),
    ((2, 3, 9), (4, 3, 3), dict(stride=2, padding=1, dilation=2)),
    ((1, 3, 6, 5), (4, 3, 3, 3), dict(padding=1)),
    ((2, 8, 9, 8), (16, 8, 3, 3), dict(stride=(2, 1), padding=(1, 0), dilation=(1, 2))),
    ((2, 6, 5, 7), (4, 3, 3, 2), dict(groups=2, padding=((1, 0), (0, 2)))),
    ((2, 16, 7, 6), (16, 1, 3, 3), dict(groups=16, padding=1)),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 3), dict(padding=(0, 1, 1), stride=(1, 2, 1))),
    ((1, 4, 5), (4, 3, 3), dict(transposed=True, stride=2, padding=1, output_padding=1)),
    ((2, 4, 4, 5), (4, 2, 3, 3), dict(transposed=True, stride=(2, 3), output_padding=(1, 2), groups=2)),
    ((1, 2, 5), (2, 3, 3), dict(transposed=True, dilation=4, padding=3, output_padding=3)),
    ((1, 2, 3, 3, 3), (2, 3, 2, 2, 2), dict(transposed=True, stride=2, padding=1, output_padding=1)),
]
IDS = [f"{len(s) - 2}d_{i}" for i, (s, _, _) in enumerate(SHAPES)]


def normal(attributes, axes):
    """stride, pads, dilation, output padding, groups, transposed; one an axis."""
    def each(name, otherwise):
        value = attributes.get(name, otherwise)
        return (value,) * axes if isinstance(value, int) else tuple(value)
    pads = tuple((p, p) if isinstance(p, int) else tuple(p) for p in each("padding", 0))
    return (each("stride", 1), pads, each("dilation", 1), each("output_padding", 0), attributes.get("groups", 1),
            attributes.get("transposed", False))


def output_shape(x, w, attributes):
    s, p, d, extra, groups, transposed = normal(attributes, len(x) - 2)
    reach = [d[i] * (w[2 + i] - 1) + 1 for i in range(len(s))]
    if transposed:
        size = [(x[2 + i] - 1) * s[i] - sum(p[i]) + reach[i] + extra[i] for i in range(len(s))]
        return (x[0], w[1] * groups, *size)
    return (x[0], w[0], *((x[2 + i] + sum(p[i]) - reach[i]) // s[i] + 1 for i in range(len(s))))


def reference(dy, x, w, attributes):
    s, p, d, _, groups, transposed = normal(attributes, x.ndim - 2)
    return _reference.conv_backward(dy, x, w, s, p, d, groups, transposed)


def operands(random, shape, weight, attributes, dtype=np.float32):
    return (integers(random, output_shape(shape, weight, attributes), dtype), integers(random, shape, dtype),
            integers(random, weight, dtype))


def test_numbers_by_hand():
    """y[o] = x[o] w[0] + x[o+1] w[1], so dx = [dy0 w0, dy0 w1 + dy1 w0, dy1 w1], dw = [Σ dy x, Σ dy x shifted]."""
    x, w, dy = (np.array([[v]], np.float32) for v in ([1, 2, 4], [3, 5], [7, 11]))
    dx, dw, db = retrograd.conv_backward(dy, x, w)
    assert dx.tolist() == [[[21, 68, 55]]] and dw.tolist() == [[[29, 58]]] and db.tolist() == [18]
    # Transposed: y = [x0 w0, x0 w1 + x1 w0, x1 w1].
    dx, dw, db = retrograd.conv_backward(x, dy, w, transposed=True)
    assert dx.tolist() == [[[13, 26]]] and dw.tolist() == [[[29, 58]]] and db.tolist() == [7]


@pytest.mark.parametrize("shape, weight, attributes", SHAPES, ids=IDS)
def test_values(random, dtype, shape, weight, attributes):
    arrays = operands(random, shape, weight, attributes, dtype)
    got = retrograd.conv_backward(*arrays, **attributes)
    for name, result, exact in zip(got._fields, got, reference(*arrays, attributes)):
        assert result.dtype == dtype, name
        assert_exact(result, exact)


@pytest.mark.parametrize("shape, weight, attributes", SHAPES, ids=IDS)
@pytest.mark.parametrize("layout", [channels_last, spread], ids=["channels_last", "spread"])
def test_layouts(random, layout, shape, weight, attributes):
    arrays = operands(random, shape, weight, attributes)
    exact = reference(*arrays, attributes)
    laid_out = [layout(a) for a in arrays]
    results = tuple(layout(np.full(e.shape, 77, np.float32)) if e.ndim > 1 else np.full(2 * len(e), 77, "f")[::2]
                    for e in exact)
    got = retrograd.conv_backward(*laid_out, out=results, **attributes)
    for given, result, right in zip(results, got, exact):
        assert result is given
        assert_exact(result, right)


def test_elements_between_results_are_left_alone(random):
    dy, x, w = operands(random, (1, 2, 5, 5), (3, 2, 3, 3), {})
    memory = np.full((1, 2, 5, 11), 77, np.float32)
    retrograd.conv_backward(dy, x, w, out=(memory[..., ::2][..., :5], None, None), wanted=(True, False, False))
    assert (memory[..., 1::2] == 77).all() and (memory[..., 10] == 77).all() and (memory[..., ::2][..., :5] != 77).any()


def test_new_results_have_the_order_of_their_operands(random):
    dy, x, w = operands(random, (2, 3, 6, 5), (4, 3, 3, 3), {})
    dx, dw, _ = retrograd.conv_backward(dy, channels_last(x), w)
    assert dx.strides == channels_last(x).strides and dw.flags.c_contiguous


@pytest.mark.parametrize("wanted", list(itertools.product([True, False], repeat=3)))
def test_wanted(random, wanted):
    attributes = dict(padding=1)
    arrays = operands(random, (2, 3, 6, 5), (4, 3, 3, 3), attributes)
    got = retrograd.conv_backward(*arrays, wanted=wanted, **attributes)
    for is_wanted, result, exact in zip(wanted, got, reference(*arrays, attributes)):
        assert (result is not None) == is_wanted
        if is_wanted:
            assert_exact(result, exact)


def test_broadcast_operands(random):
    dy, x, w = operands(random, (2, 3, 6, 5), (4, 3, 3, 3), {})
    flat = np.broadcast_to(np.float32(1), dy.shape)
    for result, exact in zip(retrograd.conv_backward(flat, x, w), reference(flat, x, w, {})):
        assert_exact(result, exact)


def test_read_only_operands(random):
    arrays = operands(random, (2, 3, 6, 5), (4, 3, 3, 3), {})
    expected = retrograd.conv_backward(*arrays)
    for array in arrays:
        array.flags.writeable = False
    for a, b in zip(retrograd.conv_backward(*arrays), expected):
        np.testing.assert_array_equal(a, b)


def test_float8(random):
    e4m3 = np.dtype(ml_dtypes.float8_e4m3fn)
    arrays = operands(random, (2, 4, 6, 5), (3, 4, 3, 3), {}, e4m3)
    got = retrograd.conv_backward(*arrays)
    exact = reference(*arrays, {})
    assert [g.dtype for g in got] == [e4m3, np.float32, np.float32]
    assert_exact(got.grad_weight, exact.grad_weight)
    assert_exact(got.grad_bias, exact.grad_bias)
    assert_exact(got.grad_input, exact.grad_input)


def test_unsigned_integers_with_a_type(random):
    arrays = operands(random, (2, 4, 6, 5), (3, 4, 3, 3), {}, ml_dtypes.bfloat16)
    expected = retrograd.conv_backward(*arrays)
    got = retrograd.conv_backward(*(a.view(np.uint16) for a in arrays), dtype="bf16")
    for a, b in zip(got, expected):
        assert a.dtype == np.uint16
        np.testing.assert_array_equal(a, b.view(np.uint16))
    # HIFLOAT8: 0x08 is 1, so the sums are those of ones.
    ones = [np.full(a.shape, 0x08, np.uint8) for a in arrays]
    got = retrograd.conv_backward(*ones, dtype="hif8", wanted=(False, True, True), out=(
        None, np.empty(arrays[2].shape, np.float32), None))
    exact = reference(*(np.ones(a.shape) for a in arrays), {})
    assert_exact(got.grad_weight, exact.grad_weight)
    assert_exact(got.grad_bias, exact.grad_bias)


def test_mixed_types(random):
    dy, x, w = operands(random, (2, 3, 6, 5), (4, 3, 3, 3), {})
    got = retrograd.conv_backward(dy.astype(np.float16), x, w.astype(ml_dtypes.bfloat16))
    assert [g.dtype for g in got] == [np.float32, ml_dtypes.bfloat16, ml_dtypes.bfloat16]
    for result, exact in zip(got, reference(dy, x, w, {})):
        assert_exact(result, exact)


def test_math_modes(random):
    dy, x, w = (random.standard_normal(s).astype("f") for s in ((2, 4, 6, 5), (2, 3, 6, 5), (4, 3, 3, 3)))
    keep = retrograd.conv_backward(dy, x, w, padding=1)
    halved = [a.astype(np.float16).astype(np.float32) for a in (dy, x, w)]
    rounded = retrograd.conv_backward(dy, x, w, padding=1, math="f16")
    assert np.array_equal(rounded.grad_weight, retrograd.conv_backward(*halved, padding=1).grad_weight)
    assert not np.array_equal(rounded.grad_weight, keep.grad_weight)
    with pytest.raises(ValueError, match="math is 'fast', expected one of keep, reduced, f16, hf32"):
        retrograd.conv_backward(dy, x, w, padding=1, math="fast")


def test_empty_batch():
    dx, dw, db = retrograd.conv_backward(np.empty((0, 4, 4, 3), "f"), np.empty((0, 3, 6, 5), "f"),
                                         np.ones((4, 3, 3, 3), "f"))
    assert dx.shape == (0, 3, 6, 5) and not dw.any() and not db.any()


@pytest.mark.parametrize("pad", [0, 1, 2])
def test_conv_tbc(random, dtype, pad):
    x, w = integers(random, (7, 2, 3), dtype), integers(random, (3, 3, 4), dtype)
    dy = integers(random, (7 + 2 * pad - 2, 2, 4), dtype)
    got = retrograd.conv_tbc_backward(dy, x, w, pad=pad)
    for result, exact in zip(got, _reference.conv_tbc_backward(dy, x, w, pad)):
        assert_exact(result, exact)
    only = retrograd.conv_tbc_backward(dy, x, w, pad=pad, wanted=(False, True, False))
    assert only.grad_input is None and only.grad_bias is None
    np.testing.assert_array_equal(only.grad_weight, got.grad_weight)
