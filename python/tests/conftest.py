# SPDX-License-Identifier: Apache-2.0
"""What the tests share: integers in every type, and memory in every order."""
import ml_dtypes
import numpy as np
import pytest

DTYPES = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}


@pytest.fixture
def random():
    return np.random.default_rng(2026)


@pytest.fixture(params=DTYPES, ids=list(DTYPES))
def dtype(request):
    return DTYPES[request.param]


def integers(random, shape, dtype=np.float32, most=2):
    """Sums of their products are exact in float32, and the results round once."""
    return random.integers(-most, most + 1, shape).astype(dtype)


def channels_last(array):
    """The same values with the channels' axis fastest."""
    moved = np.ascontiguousarray(np.moveaxis(array, 1, -1))
    return np.moveaxis(moved, -1, 1)


def spread(array):
    """The same values, every other element of a larger array, its last axis reversed."""
    wide = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)][..., ::-1]
    view[...] = array
    return view


def assert_exact(got, exact):
    assert got.shape == exact.shape
    np.testing.assert_array_equal(got.astype(np.float64), exact.astype(got.dtype).astype(np.float64))
