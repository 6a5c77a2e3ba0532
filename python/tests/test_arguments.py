# SPDX-License-Identifier: Apache-2.0
"""Bad input: the exception of its kind, with a sentence that names the argument."""
import subprocess
import sys

import numpy as np
import pytest

import retrograd

X, W, DY = (np.ones(s, np.float32) for s in ((2, 3, 6, 5), (4, 3, 3, 3), (2, 4, 4, 3)))


def test_the_arrays_are_legal():
    assert retrograd.conv_backward(DY, X, W).grad_input.shape == X.shape


@pytest.mark.parametrize("error, words, change", [
    (TypeError, "input has the dtype float64", dict(input=X.astype(np.float64))),
    (TypeError, "weight has the dtype int32", dict(weight=W.astype(np.int32))),
    (TypeError, "grad_output has the dtype uint16", dict(grad_output=DY.astype(np.uint16))),
    (TypeError, "input is of type list", dict(input=[1.0])),
    (TypeError, "weight is of type NoneType", dict(weight=None)),
    (TypeError, "grad_output is of type str", dict(grad_output="array")),
    (ValueError, r"grad_output.shape\[2\] is 5, expected 4", dict(grad_output=np.ones((2, 4, 5, 3), "f"))),
    (ValueError, "rank 2", dict(input=X[0, 0])),
    (ValueError, "rank", dict(weight=np.ones((), "f"))),
    (ValueError, "has 9 axes, expected at most 8", dict(input=np.ones((1,) * 9, "f"))),
    (ValueError, r"stride\[0\] is 0", dict(stride=0)),
    (ValueError, r"stride has 3 entries, expected 2", dict(stride=(1, 1, 1))),
    (ValueError, r"padding\[1\] is -1", dict(padding=(0, -1))),
    (TypeError, "padding is", dict(padding=((1, 2), 3))),
    (TypeError, "stride is 1.5", dict(stride=1.5)),
    (TypeError, "dilation is", dict(dilation=("a", "b"))),
    (TypeError, "groups is 'x'", dict(groups="x")),
    (ValueError, "groups is 0", dict(groups=0)),
    (ValueError, "groups is 3", dict(groups=3)),
    (ValueError, "groups is", dict(groups=2**70)),
    (ValueError, "groups is -1", dict(groups=-1, transposed=True)),
    (ValueError, "not transposed", dict(output_padding=1)),
    (ValueError, "wanted has 2 entries", dict(wanted=(True, False))),
    (ValueError, "dtype is 'f64'", dict(dtype="f64")),
    (TypeError, "out is of type ndarray", dict(out=X)),
    (ValueError, "out has 1 entries", dict(out=(X,))),
    (ValueError, "out has a grad_bias, which is not wanted",
     dict(out=(None, None, np.empty(4, "f")), wanted=(True, True, False))),
    (ValueError, "grad_weight.shape", dict(out=(None, np.empty((4, 3, 3, 2), "f"), None))),
    (TypeError, "grad_input has the dtype float64", dict(out=(np.empty(X.shape), None, None))),
    (ValueError, "grad_input shares memory with input", dict(out=(X, None, None))),
])
def test_refused(error, words, change):
    arguments = {"grad_output": DY, "input": X, "weight": W, **change}
    with pytest.raises(error, match=words):
        retrograd.conv_backward(**arguments)


def test_read_only_results():
    out = np.empty(X.shape, "f")
    out.flags.writeable = False
    with pytest.raises(ValueError, match="grad_input is read-only"):
        retrograd.conv_backward(DY, X, W, out=(out, None, None))


def test_overlapping_results():
    out = np.broadcast_to(np.empty((1, 3, 6, 5), "f"), X.shape)
    out = np.lib.stride_tricks.as_strided(np.empty((1, 3, 6, 5), "f"), X.shape, (0, 120, 20, 4), writeable=True)
    with pytest.raises(ValueError, match="grad_input"):
        retrograd.conv_backward(DY, X, W, out=(out, None, None))


def test_results_that_share_memory():
    both = np.empty(max(X.size, W.size), "f")
    out = (both[: X.size].reshape(X.shape), both[: W.size].reshape(W.shape), None)
    with pytest.raises(ValueError, match="grad_weight shares memory with grad_input"):
        retrograd.conv_backward(DY, X, W, out=out)


def test_interleaved_results_are_legal():
    both = np.empty((2, 3, 6, 10), "f")
    dx, *_ = retrograd.conv_backward(DY, np.ascontiguousarray(X), W, out=(both[..., ::2], None, None))
    np.testing.assert_array_equal(dx, retrograd.conv_backward(DY, X, W).grad_input)


def test_strides_that_are_no_multiple_of_the_elements():
    packed = np.zeros(4, np.dtype([("a", "u1"), ("x", "<f4")]))["x"].reshape(1, 1, 4)
    with pytest.raises(ValueError, match="stride of 5 bytes"):
        retrograd.conv_backward(np.ones((1, 1, 2), "f"), packed, np.ones((1, 1, 3), "f"))


def test_big_endian_is_refused():
    with pytest.raises(TypeError, match="input has the dtype >f4"):
        retrograd.conv_backward(DY, X.astype(">f4"), W)


def test_a_refusal_says_how_to_repeat_it():
    with pytest.raises(ValueError, match='reproduce: retrograd explain "conv input='):
        retrograd.conv_backward(DY, X, W, groups=3)


def test_pool_refusals():
    dy, x = np.ones((1, 1, 2), "f"), np.ones((1, 1, 4), "f")
    with pytest.raises(ValueError, match=r"kernel\[0\] is 0"):
        retrograd.avg_pool_backward(dy, x, 0)
    with pytest.raises(ValueError, match="half the kernel"):
        retrograd.avg_pool_backward(dy, x, 2, padding=2)
    with pytest.raises(TypeError, match="out is of type tuple"):
        retrograd.avg_pool_backward(dy, x, 2, out=(x,))
    with pytest.raises(ValueError, match="out shares memory with grad_output"):
        memory = np.ones(4, "f")
        retrograd.avg_pool_backward(memory[:2].reshape(1, 1, 2), x, 2, out=memory.reshape(1, 1, 4))
    with pytest.raises(TypeError, match="float8"):
        retrograd.avg_pool_backward(dy.astype(np.uint8), x.astype(np.uint8), 2, dtype=None)


def test_more_memory_than_there_is():
    """In a process whose memory is limited behind its arrays: there is none for the workspace, then there is."""
    program = (
        "import resource, retrograd\n"
        "plan = retrograd.plan('conv input=4x64x56x56 weight=64x64x3x3 padding=1x1 dtype=f16')\n"
        "assert plan.workspace_bytes > 1 << 20, plan.workspace_bytes\n"
        "names = ('grad_output', 'input', 'weight', 'grad_input', 'grad_weight', 'grad_bias')\n"
        "dy, x, w, *out = (plan.empty(name) for name in names)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    plan(dy, x, w, out=out)\n"
        "except MemoryError:\n"
        "    print('none')\n"
        "resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)\n"
        "plan(dy, x, w, out=out)\n"
        "print('some')\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "none\nsome\n", done.stderr
