# SPDX-License-Identifier: Apache-2.0
"""The infiniop interface through ctypes, on torch tensors that are on a GPU. The null stream is torch's default one."""
import ctypes
import os

DTYPES = {"float16": 12, "float32": 13, "bfloat16": 19}
NVIDIA = 1


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.check(self.lib.infinirtSetDevice(NVIDIA, 0), "infinirtSetDevice")
        self.handle = ctypes.c_void_p()
        self.check(self.lib.infiniopCreateHandle(ctypes.byref(self.handle)), "infiniopCreateHandle")

    def check(self, status, what):
        if status != 0:
            raise RuntimeError(f"{what} answered {status}")

    def tensor(self, t):
        n = t.dim()
        out = ctypes.c_void_p()
        self.check(self.lib.infiniopCreateTensorDescriptor(
            ctypes.byref(out), ctypes.c_size_t(n), (ctypes.c_size_t * n)(*t.shape),
            (ctypes.c_ssize_t * n)(*t.stride()), DTYPES[str(t.dtype).split(".")[1]]), "infiniopCreateTensorDescriptor")
        return out


def _array(values):
    return (ctypes.c_int64 * len(values))(*values)


def _by_axis(value, n):
    return _array(value if isinstance(value, tuple) else (value,) * n)


def _p(t):
    return ctypes.c_void_p(t.data_ptr() if t is not None else None)


class Conv:
    """All three gradients, or those asked for."""

    def __init__(self, lib, torch, gy, x, w, stride, pad, dilation, transposed, groups, mask=(True, True, True)):
        self.lib, self.args = lib, (gy, x, w)
        bias = torch.empty(gy.shape[1], dtype=x.dtype, device=x.device)
        self.gx = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device) if mask[0] else None
        self.gw = torch.empty_strided(w.shape, w.stride(), dtype=x.dtype, device=x.device) if mask[1] else None
        self.gb = bias if mask[2] else None
        self.desc = ctypes.c_void_p()
        n = x.dim() - 2
        lib.check(lib.lib.retrogradInfiniopCreateConvBackwardDescriptor(
            lib.handle, ctypes.byref(self.desc), lib.tensor(gy), lib.tensor(x), lib.tensor(w), lib.tensor(bias),
            _by_axis(pad, n), ctypes.c_size_t(n), _by_axis(stride, n), _by_axis(dilation, n),
            ctypes.c_bool(transposed), None, ctypes.c_int64(groups)), "retrogradInfiniopCreateConvBackwardDescriptor")
        size = ctypes.c_size_t()
        lib.check(lib.lib.infiniopGetConvBackwardWorkspaceSize(self.desc, ctypes.byref(size)), "workspace")
        self.workspace = torch.empty(max(size.value, 1), dtype=torch.uint8, device=x.device)
        self.call = (self.desc, _p(self.workspace), ctypes.c_size_t(size.value), _p(self.gx), _p(self.gw), _p(self.gb),
                     _p(gy), _p(x), _p(w), None)

    def run(self):
        self.lib.check(self.lib.lib.infiniopConvBackward(*self.call), "infiniopConvBackward")


class TextConv:
    """A convolution backward in the text form, by retrograd.h: infiniop cannot say how products are made."""

    def __init__(self, lib, torch, text, gy, x, w, mask):
        def check(status, what):
            if status != 0:
                raise RuntimeError(f"{what}: {lib.lib.retrogradGetLastError().decode()}")

        lib.lib.retrogradGetLastError.restype = ctypes.c_char_p
        self.lib, self.args, self.check = lib, (gy, x, w), check
        self.gx, self.gw = (torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in (x, w))
        self.gb = torch.empty(gy.shape[1], dtype=x.dtype, device=x.device)
        self.gx, self.gw, self.gb = (t if m else None for t, m in zip((self.gx, self.gw, self.gb), mask))
        self.plan, size = ctypes.c_void_p(), ctypes.c_size_t()
        cuda = ctypes.c_uint64(1)  # {int32 type, int32 index}
        check(lib.lib.retrogradCreatePlanFromText(ctypes.byref(self.plan), text.encode(), cuda), "retrogradCreatePlanFromText")
        check(lib.lib.retrogradGetWorkspaceSize(self.plan, ctypes.byref(size)), "retrogradGetWorkspaceSize")
        self.workspace = torch.empty(max(size.value, 1), dtype=torch.uint8, device=x.device)
        self.addresses = (ctypes.c_void_p * 6)(*(t.data_ptr() if t is not None else None
                                                 for t in (gy, x, w, self.gx, self.gw, self.gb)))
        self.call = (self.plan, ctypes.byref(self.addresses), _p(self.workspace), ctypes.c_size_t(size.value), None)

    def run(self):
        self.check(self.lib.lib.retrogradExecute(*self.call), "retrogradExecute")


class Pool:
    def __init__(self, lib, torch, gy, x, kernel, stride, pad):
        self.lib = lib
        self.gx = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
        n = x.dim() - 2
        self.desc = ctypes.c_void_p()
        lib.check(lib.lib.retrogradInfiniopCreateAvgPoolBackwardDescriptor(
            lib.handle, ctypes.byref(self.desc), lib.tensor(self.gx), lib.tensor(gy), lib.tensor(x), _by_axis(kernel, n),
            _by_axis(stride, n), _by_axis(pad, n), ctypes.c_bool(False), ctypes.c_bool(True), ctypes.c_int64(0)),
            "retrogradInfiniopCreateAvgPoolBackwardDescriptor")
        size = ctypes.c_size_t()
        lib.check(lib.lib.infiniopGetAvgPoolBackwardWorkspaceSize(self.desc, ctypes.byref(size)), "workspace")
        self.workspace = torch.empty(max(size.value, 1), dtype=torch.uint8, device=x.device)
        self.call = (self.desc, _p(self.workspace), ctypes.c_size_t(size.value), _p(self.gx), _p(gy), _p(x), None)

    def run(self):
        self.lib.check(self.lib.lib.infiniopAvgPoolBackward(*self.call), "infiniopAvgPoolBackward")


class Forward:
    """A convolution with a bias, not a transposed one: infiniop has none."""

    def __init__(self, lib, torch, y_like, x, w, bias, stride, pad, dilation):
        self.lib, self.args = lib, (x, w, bias)
        self.y = torch.empty_strided(y_like.shape, y_like.stride(), dtype=x.dtype, device=x.device)
        self.desc = ctypes.c_void_p()
        n = x.dim() - 2
        lib.check(lib.lib.infiniopCreateConvDescriptor(
            lib.handle, ctypes.byref(self.desc), lib.tensor(self.y), lib.tensor(x), lib.tensor(w), lib.tensor(bias),
            _by_axis(pad, n), _by_axis(stride, n), _by_axis(dilation, n), ctypes.c_size_t(n)), "infiniopCreateConvDescriptor")
        size = ctypes.c_size_t()
        lib.check(lib.lib.infiniopGetConvWorkspaceSize(self.desc, ctypes.byref(size)), "workspace")
        self.workspace = torch.empty(max(size.value, 1), dtype=torch.uint8, device=x.device)
        self.call = (self.desc, _p(self.workspace), ctypes.c_size_t(size.value), _p(self.y), _p(x), _p(w), _p(bias), None)

    def run(self):
        self.lib.check(self.lib.lib.infiniopConv(*self.call), "infiniopConv")


class PoolForward:
    def __init__(self, lib, torch, y_like, x, kernel, stride, pad):
        self.lib, self.args = lib, (x,)
        self.y = torch.empty_strided(y_like.shape, y_like.stride(), dtype=x.dtype, device=x.device)
        n = x.dim() - 2
        self.desc = ctypes.c_void_p()
        lib.check(lib.lib.infiniopCreateAvgPoolDescriptor(
            lib.handle, ctypes.byref(self.desc), lib.tensor(self.y), lib.tensor(x), _by_axis(kernel, n),
            _by_axis(stride, n), _by_axis(pad, n), ctypes.c_bool(False)), "infiniopCreateAvgPoolDescriptor")
        size = ctypes.c_size_t()
        lib.check(lib.lib.infiniopGetAvgPoolWorkspaceSize(self.desc, ctypes.byref(size)), "workspace")
        self.workspace = torch.empty(max(size.value, 1), dtype=torch.uint8, device=x.device)
        self.call = (self.desc, _p(self.workspace), ctypes.c_size_t(size.value), _p(self.y), _p(x), None)

    def run(self):
        self.lib.check(self.lib.lib.infiniopAvgPool(*self.call), "infiniopAvgPool")


def find_library():
    here = os.path.dirname(os.path.abspath(__file__))
    build = os.path.join(here, "..", "..", "build")
    for path in (os.environ.get("RETROGRAD_LIBRARY"), os.path.join(build, "gpu", "lib", "libretrograd.so"),
                 os.path.join(build, "gpu-run", "lib", "libretrograd.so.0")):
        if path and os.path.exists(path):
            return path
    raise SystemExit("no libretrograd.so: set RETROGRAD_LIBRARY")
