# SPDX-License-Identifier: Apache-2.0
"""What kinds of arrays there are: their element types, and how more of the same kind are made."""
from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from . import _core

# Numbers of retrograd.h.
F32, F16, BF16, HIF8, E4M3 = range(5)
OWN = -1  # the array's own type
NAMES = {"f32": F32, "f16": F16, "bf16": BF16, "hif8": HIF8, "e4m3": E4M3}
NAME_OF = {number: name for name, number in NAMES.items()}
_SIZES = {F32: 4, F16: 2, BF16: 2, HIF8: 1, E4M3: 1}
PLAIN = {np.dtype(np.float32): F32, np.dtype(np.float16): F16}
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}
_EXPECTED = "float32, float16, and bfloat16 or float8_e4m3fn of ml_dtypes"


def _ml_dtype(name: str) -> Any:
    """A type of ml_dtypes; None when nobody has imported it, so that no array can have it."""
    module = sys.modules.get("ml_dtypes")
    return None if module is None else np.dtype(getattr(module, name))


def _named(dtype: np.dtype) -> int | None:
    """The number of a type that NumPy does not know by itself."""
    return {"bfloat16": BF16, "float8_e4m3fn": E4M3}.get(dtype.name)


def given_dtype(dtype: str | None) -> int:
    """The number behind the argument `dtype`."""
    if dtype is None:
        return OWN
    if dtype not in NAMES:
        raise ValueError(f"dtype is {dtype!r}, expected one of {', '.join(NAMES)}")
    return NAMES[dtype]


def is_numpy(array: Any) -> bool:
    return isinstance(array, np.ndarray)


def for_core(array: Any, name: str, dtype: int) -> tuple[Any, int]:
    """The array as the extension module takes it, and the type of its elements where it does not say so itself."""
    if array is None:
        return None, OWN
    if not is_numpy(array):
        return array, dtype
    kind = PLAIN.get(array.dtype)
    if kind is not None:
        return array, kind
    if array.dtype.kind == "u" and dtype != OWN and array.dtype.itemsize == _SIZES[dtype]:
        return array, dtype
    if (number := _named(array.dtype)) is not None:
        return array.view(_UNSIGNED[array.dtype.itemsize]), number
    raise TypeError(f"{name} has the dtype {array.dtype}, expected {_EXPECTED}")


def dtype_number(array: Any, name: str, dtype: int) -> int:
    """The type of an array's elements; OWN for arrays of other libraries."""
    return for_core(array, name, dtype)[1]


def numpy_dtype(number: int, like: np.ndarray | None = None) -> np.dtype:
    """What a NumPy array of this type has as its dtype: like the other one, where it holds the same."""
    if like is not None and (like.dtype.kind == "u" or _named(like.dtype) == number):
        if like.dtype.itemsize == _SIZES[number]:
            return like.dtype
    if number == F32:
        return np.dtype(np.float32)
    if number == F16:
        return np.dtype(np.float16)
    found = {BF16: _ml_dtype("bfloat16"), E4M3: _ml_dtype("float8_e4m3fn")}.get(number)
    return found if found is not None else np.dtype(_UNSIGNED[_SIZES[number]])


def is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _namespace(array: Any, name: str) -> Any:
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    module = sys.modules.get(type(array).__module__.partition(".")[0])
    if hasattr(module, "empty") and hasattr(module, "float32"):  # cupy, in versions before the standard
        return module
    raise TypeError(
        f"results cannot be made like {name}, a {type(array).__module__}.{type(array).__name__}: give them as out="
    )


def _empty(xp: Any, shape: tuple[int, ...], dtype: Any, like: Any, function: str = "empty") -> Any:
    device = getattr(like, "device", None)
    try:
        return getattr(xp, function)(shape, dtype=dtype, device=device)
    except TypeError:  # no such argument: its current device
        return getattr(xp, function)(shape, dtype=dtype)


def empty_like(array: Any, name: str) -> Any:
    """An array of the same kind, type, shape, and order of axes in memory."""
    if is_numpy(array):
        return np.empty_like(array, order="K", subok=False)
    if is_torch(array):
        return sys.modules["torch"].empty_like(array, requires_grad=False)
    return _empty(_namespace(array, name), array.shape, array.dtype, array)


def empty(shape: tuple[int, ...], like: Any, name: str, dtype: np.dtype | None = None) -> Any:
    """A dense array of the same kind; `dtype` is for NumPy's."""
    if is_numpy(like):
        return np.empty(shape, dtype=dtype)
    if is_torch(like):
        return sys.modules["torch"].empty(shape, dtype=like.dtype, device=like.device)
    return _empty(_namespace(like, name), shape, like.dtype, like)


def empty_in_order(shape: tuple[int, ...], like: Any, name: str) -> Any:
    """As empty, of the same type and rank, and with the same order of axes in memory."""
    if not is_numpy(like) and not is_torch(like):
        return empty(shape, like, name)
    if type(like) is np.ndarray and like.flags.c_contiguous:
        return np.empty(shape, like.dtype)
    strides = like.strides if is_numpy(like) else like.stride()
    order = sorted(range(len(shape)), key=lambda i: -abs(strides[i]))
    made = empty(tuple(shape[i] for i in order), like, name, like.dtype if is_numpy(like) else None)
    back = [order.index(i) for i in range(len(shape))]
    return made.transpose(back) if is_numpy(like) else made.permute(back)


def zeros(shape: tuple[int, ...], like: Any, name: str) -> Any:
    """A dense array of the same kind and type, filled with 0."""
    if is_numpy(like):
        return np.zeros(shape, like.dtype)
    if is_torch(like):
        return sys.modules["torch"].zeros(shape, dtype=like.dtype, device=like.device)
    return _empty(_namespace(like, name), shape, like.dtype, like, "zeros")


def float32_like(array: Any, name: str) -> Any:
    """As empty_like, of float32: what gradients of 8-bit tensors are in."""
    if is_numpy(array):
        return np.empty_like(array, dtype=np.float32, order="K", subok=False)
    if is_torch(array):
        torch = sys.modules["torch"]
        return torch.empty_like(array, dtype=torch.float32, requires_grad=False)
    xp = _namespace(array, name)
    return _empty(xp, array.shape, xp.float32, array)


def workspace_maker(array: Any) -> Any:
    """allocate(bytes) for a run on the device of the array; None on CPUs, where the extension module does it."""
    if is_numpy(array):
        return None
    if is_torch(array):
        torch, device = sys.modules["torch"], array.device
        return lambda size: torch.empty(size, dtype=torch.uint8, device=device)

    def allocate(size: int) -> Any:
        xp = _namespace(array, "input")
        return _empty(xp, (size,), xp.uint8, array)

    return allocate


def stream_number(stream: Any, array: Any) -> int:
    """The cudaStream_t as a number: the one given, PyTorch's current one, or 0, the legacy default stream."""
    if stream is None:
        if is_torch(array) and array.is_cuda:
            return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)
        return 0
    for attribute in ("cuda_stream", "ptr", "handle"):  # torch, cupy, numba
        if hasattr(stream, attribute):
            stream = getattr(stream, attribute)
            break
    number = int(getattr(stream, "value", stream) or 0)
    if number < 0:
        raise ValueError(f"stream is {number}, expected a cudaStream_t as a number, or a stream object")
    return number


def check_apart(results: dict[str, Any], operands: dict[str, Any]) -> None:
    """Results that were given must not lie where operands, or other results, do."""
    if _core.lie_apart(tuple(results.values()), tuple(operands.values())):
        return
    places = list(operands.items())
    for name, result in results.items():
        for other_name, other in places:
            if is_numpy(result) and is_numpy(other) and _share(result, other):
                raise ValueError(f"{name} shares memory with {other_name}")
        places.append((name, result))


def _share(a: np.ndarray, b: np.ndarray) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=10000))
    except np.exceptions.TooHardError if hasattr(np, "exceptions") else np.TooHardError:  # type: ignore[attr-defined]
        return True


def from_elements(number: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """A NumPy array with these strides, in elements, over zeroed memory of its own."""
    dtype = numpy_dtype(number)
    lowest = sum((n - 1) * s for n, s in zip(shape, strides) if n > 0 and s < 0)
    highest = sum((n - 1) * s for n, s in zip(shape, strides) if n > 0 and s > 0)
    memory = np.zeros(highest - lowest + 1 if math.prod(shape) else 1, dtype)
    return np.lib.stride_tricks.as_strided(
        memory[-lowest:], shape, tuple(s * dtype.itemsize for s in strides), writeable=True
    )
