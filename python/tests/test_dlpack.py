# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries: anything with __dlpack__ is read and written where it lies."""
import ctypes
import sys

import numpy as np
import pytest
from conftest import integers

import retrograd


class Foreign:
    """An array of a library that knows DLPack and no buffers: NumPy's capsules, and a record of how they were asked for."""

    def __init__(self, array, versioned=True, device=(1, 0)):
        self.array, self.versioned, self.device, self.asked = array, versioned, device, []
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        if not self.versioned and "max_version" in keywords:
            raise TypeError("unexpected keyword max_version")
        keywords.pop("stream", None)
        return self.array.__dlpack__(**keywords)

    def __array_namespace__(self):
        return ForeignNamespace


class ForeignNamespace:
    float32 = np.float32

    @staticmethod
    def empty(shape, dtype, device):
        return Foreign(np.empty(shape, dtype))


def operands(random, dtype=np.float32):
    return (integers(random, (2, 4, 6, 5), dtype), integers(random, (2, 3, 6, 5), dtype),
            integers(random, (4, 3, 3, 3), dtype))


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_values_and_kind(random, versioned, dtype):
    if versioned and int(np.__version__.split(".")[0]) < 2:
        pytest.skip("NumPy before 2.1 has no versioned capsules")
    arrays = operands(random, dtype)
    expected = retrograd.conv_backward(*arrays, padding=1)
    foreign = [Foreign(a, versioned) for a in arrays]
    got = retrograd.conv_backward(*foreign, padding=1)
    for a, b in zip(got, expected):
        assert isinstance(a, Foreign)
        np.testing.assert_array_equal(a.array, b)
    assert foreign[0].asked[0] == {"max_version": (1, 1)}


def test_forward(random):
    _, x, w = operands(random)
    b = integers(random, (4,))
    got = retrograd.conv(Foreign(x), Foreign(w), Foreign(b), padding=1)
    assert isinstance(got, Foreign)
    np.testing.assert_array_equal(got.array, retrograd.conv(x, w, b, padding=1))
    out = Foreign(np.empty((2, 3, 3, 2), "f"))
    retrograd.avg_pool(Foreign(x), 2, out=out)
    np.testing.assert_array_equal(out.array, retrograd.avg_pool(x, 2))


class PlainNamespace(ForeignNamespace):
    """Of a library whose functions know no device."""

    @staticmethod
    def empty(shape, dtype):
        return Foreign(np.empty(shape, dtype))


def test_a_namespace_without_devices(random, monkeypatch):
    monkeypatch.setattr(Foreign, "__array_namespace__", lambda self: PlainNamespace)
    arrays = operands(random)
    got = retrograd.conv_backward(*(Foreign(a) for a in arrays), padding=1)
    for a, b in zip(got, retrograd.conv_backward(*arrays, padding=1)):
        np.testing.assert_array_equal(a.array, b)


def test_a_module_instead_of_a_namespace(random, monkeypatch):
    """As cupy was before its arrays named one."""
    monkeypatch.delattr(Foreign, "__array_namespace__")
    module = sys.modules[Foreign.__module__]
    monkeypatch.setattr(module, "empty", PlainNamespace.empty, raising=False)
    monkeypatch.setattr(module, "float32", np.float32, raising=False)
    arrays = operands(random)
    got = retrograd.conv_backward(*(Foreign(a) for a in arrays), padding=1)
    np.testing.assert_array_equal(got.grad_weight.array, retrograd.conv_backward(*arrays, padding=1).grad_weight)


def test_nothing_is_copied(random):
    dy, x, w = operands(random)
    out = Foreign(np.full(x.shape[:3] + (10,), 77, np.float32)[..., ::2])
    retrograd.conv_backward(Foreign(dy), Foreign(x.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2)), Foreign(w),
                            padding=1, wanted=(True, False, False), out=(out, None, None))
    np.testing.assert_array_equal(out.array, retrograd.conv_backward(dy, x, w, padding=1).grad_input)


def test_read_only_results(random):
    dy, x, w = operands(random)
    out = np.empty_like(x)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="grad_input is read-only"):
        retrograd.conv_backward(dy, x, w, padding=1, out=(Foreign(out), None, None))


def test_capsules_are_given_back(random):
    dy, x, w = operands(random)
    before = sys.getrefcount(x)
    for _ in range(5):
        retrograd.conv_backward(Foreign(dy), Foreign(x), Foreign(w), padding=1)
        with pytest.raises(ValueError):
            retrograd.conv_backward(Foreign(dy), Foreign(x), Foreign(w), padding=2)
    assert sys.getrefcount(x) == before


def test_types_that_are_not_served(random):
    dy, x, w = operands(random)
    with pytest.raises(TypeError, match="input has elements of DLPack type 2 with 64 bits"):
        retrograd.conv_backward(dy, Foreign(x.astype(np.float64)), w, padding=1, out=(np.empty_like(x), None, None))


class Capsule(Foreign):
    """One whose device says something else than the data's: what a GPU array looks like from here."""

    def __dlpack__(self, **keywords):
        self.asked.append(dict(keywords))
        keywords.pop("stream", None)
        capsule = self.array.__dlpack__(**keywords)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, b"dltensor_versioned")
        # version (8), manager context (8), deleter (8), flags (8), data (8), then the device.
        device = (ctypes.c_int32 * 2).from_address(address + 40)
        device[0], device[1] = self.device
        return capsule


@pytest.mark.skipif(int(np.__version__.split(".")[0]) < 2, reason="NumPy before 2.1 has no versioned capsules")
def test_devices(random):
    dy, x, w = operands(random)
    with pytest.raises(ValueError, match="weight is on a device of DLPack type 8, expected CPU"):
        retrograd.conv_backward(dy, x, Capsule(w, device=(8, 0)), padding=1, out=(None, np.empty_like(w), np.empty(4, "f")))
    with pytest.raises(ValueError, match="weight is on cuda:1, expected cpu:0: the device of grad_output"):
        retrograd.conv_backward(dy, x, Capsule(w, device=(2, 1)), padding=1, out=(None, np.empty_like(w), np.empty(4, "f")))
    # All of them on a GPU that is not here: asked for the stream, and refused before anything is touched.
    on_gpu = [Capsule(a, device=(2, 97)) for a in (dy, x, w)]
    out = (Capsule(np.empty_like(x), device=(2, 97)), None, None)
    with pytest.raises(ValueError, match="cuda:97, which does not exist"):
        retrograd.conv_backward(*on_gpu, padding=1, wanted=(True, False, False), out=out, stream=4096)
    assert on_gpu[0].asked == [{"stream": 4096, "max_version": (1, 1)}]
    with pytest.raises(ValueError, match="cuda:97"):
        retrograd.conv_backward(*on_gpu, padding=1, wanted=(True, False, False), out=out)
    assert on_gpu[0].asked[-1]["stream"] == 1, "the legacy default stream"


def with_buffer(array, device):
    """An array of a library that has buffers, too: those of ctypes, which have no strides."""
    kind = ctypes.c_float
    for size in reversed(array.shape):
        kind = kind * size

    class Both(kind):
        def __dlpack_device__(self):
            return device

        def __dlpack__(self, **keywords):
            return Capsule(array, device=device).__dlpack__(**keywords)

    made = Both()
    ctypes.memmove(made, array.ctypes.data, array.nbytes)
    made.shape, made.dtype = array.shape, array.dtype
    return made


def test_buffers_without_strides(random):
    dy, x, w = operands(random)
    expected = retrograd.conv_backward(dy, x, w, padding=1)
    out = tuple(np.empty_like(a) for a in expected)
    retrograd.conv_backward(*(with_buffer(a, (1, 0)) for a in (dy, x, w)), padding=1, out=out)
    for got, wanted in zip(out, expected):
        np.testing.assert_array_equal(got, wanted)


def test_arrays_of_ctypes(random):
    """The functions refuse them; a plan knows the shape and takes any buffer, or says what is wrong with it."""
    dy, x, w = operands(random)
    flat = (ctypes.c_float * x.size)()
    with pytest.raises(TypeError, match="input is of type c_float_Array_180, expected a NumPy array or one with __dlpack__"):
        retrograd.conv_backward(dy, flat, w, padding=1)
    plan = retrograd.plan("conv input=2x3x6x5 weight=4x3x3x3 padding=1x1")
    with pytest.raises(ValueError, match=r"input has the shape \(180,\), the plan is for \(2, 3, 6, 5\)"):
        plan(dy, flat, w)


@pytest.mark.skipif(int(np.__version__.split(".")[0]) < 2, reason="NumPy before 2.1 has no versioned capsules")
def test_an_array_elsewhere_that_has_a_buffer(random):
    """CuPy's arrays say that they have a buffer, and raise when they are asked for it."""
    dy, x, w = operands(random)
    *on_gpu, out = (with_buffer(a, (2, 97)) for a in (dy, x, w, np.empty_like(x)))
    with pytest.raises(ValueError, match="cuda:97, which does not exist"):
        retrograd.conv_backward(*on_gpu, padding=1, wanted=(True, False, False), out=(out, None, None))


def test_an_array_that_cannot_make_others(random):
    class Bare:
        def __init__(self, array):
            self.array, self.shape, self.dtype = array, array.shape, array.dtype
            self.__dlpack_device__ = array.__dlpack_device__

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    dy, x, w = operands(random)
    with pytest.raises(TypeError, match="give them as out="):
        retrograd.conv_backward(dy, Bare(x), w, padding=1)
    got = retrograd.conv_backward(dy, Bare(x), w, padding=1, out=(np.empty_like(x), None, None))
    np.testing.assert_array_equal(got.grad_input, retrograd.conv_backward(dy, x, w, padding=1).grad_input)


def test_torch_tensors(random):
    torch = pytest.importorskip("torch")
    dy, x, w = operands(random)
    expected = retrograd.conv_backward(dy, x, w, padding=1)
    got = retrograd.conv_backward(*(torch.from_numpy(a) for a in (dy, x, w)), padding=1)
    for a, b in zip(got, expected):
        assert isinstance(a, torch.Tensor)
        np.testing.assert_array_equal(a.numpy(), b)
    last = torch.from_numpy(x).to(memory_format=torch.channels_last)
    y = retrograd.conv(last, torch.from_numpy(w), padding=1)
    assert y.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_array_equal(y.numpy(), retrograd.conv(x, w, padding=1))
    wide = [torch.from_numpy(a).to(torch.bfloat16) for a in (dy, x, w)]
    assert retrograd.conv_backward(*wide, padding=1).grad_weight.dtype == torch.bfloat16
