#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`pytorch_peer.py --threads N`: PyTorch behind the line protocol of `retrograd bench --peer` (bench/README.md).

Runs with Debian's python3-torch, hence the system's Python in the first line, and with PyPI's torch. A call is the operator
alone on tensors with the strides that the problem has: convolution_backward, conv_tbc_backward, avg_pool…_backward, or with forward=1 the operators
themselves.
"""
import argparse
import ctypes
import functools
import gc
import re
import statistics
import sys
import time

DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
# A variant this much slower than the best at first sight is not timed again.
HOPELESS = 1.3
# Idle threads spin for a while, OpenMP's for some milliseconds and OpenBLAS's for about 20; whoever is timed next must
# not share the cores with them.
UNTIL_OPENMP_SLEEPS, UNTIL_OPENBLAS_SLEEPS = 0.01, 0.03
# Seconds of calls that are not timed: threads that have slept share a core at first, and caches are full of other data.
SETTLING = 0.003


class Declined(Exception):
    """The problem cannot be run here; the text goes into `no REASON`."""


def numbers(text):
    return [] if text == "none" else [int(word) for word in text.split("x")]


def parse(text):
    """The one-line text form (docs/dispatch.md): the kind, and its keys as strings."""
    kind, *words = text.split()
    return kind, dict(word.split("=", 1) for word in words)


def tensor(torch, text, default_dtype):
    """SHAPE[:dtype][@strides] with values between -1 and 1; its memory is touched by filling it."""
    text, _, strides = text.partition("@")
    shape, _, dtype = text.partition(":")
    dtype = dtype or default_dtype
    if dtype not in DTYPES:
        raise Declined(f"PyTorch has no {dtype}")
    sizes = numbers(shape)
    dense = torch.rand(sizes) * 2 - 1
    made = torch.empty_strided(sizes, numbers(strides)) if strides else torch.empty(sizes)
    return made.copy_(dense).to(getattr(torch, DTYPES[dtype]))


def an_entry_an_axis(key, default, axes, keys):
    values = numbers(keys[key]) if key in keys else default
    if len(values) == 1:
        values = values * axes
    if len(values) != axes:
        raise Declined(f"{key} on each side of an axis")
    return values


def conv_call(torch, keys):
    dtype = keys.get("dtype", "f32")
    x, w = tensor(torch, keys["input"], dtype), tensor(torch, keys["weight"], dtype)
    axes = x.dim() - 2
    stride, padding, dilation, output_padding = (
        an_entry_an_axis(key, [default] * axes, axes, keys)
        for key, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0)))
    transposed, groups = keys.get("transposed") == "1", int(keys.get("groups", "1"))
    if keys.get("forward") == "1":
        bias = tensor(torch, keys["bias"], dtype) if "bias" in keys else None
        return functools.partial(torch.ops.aten.convolution.default, x, w, bias, stride, padding, dilation, transposed,
                                 output_padding, groups)
    if "grad_output" in keys:
        y = tensor(torch, keys["grad_output"], dtype)
    else:
        # Of the forward operator only the shape is wanted, which no data is needed for.
        shape = torch.ops.aten.convolution(x.to("meta"), w.to("meta"), None, stride, padding, dilation, transposed,
                                           output_padding, groups).shape
        y = tensor(torch, "x".join(map(str, shape)), dtype)
    mask = keys.get("mask", "iwb")
    wanted = [letter in mask for letter in "iwb"] if mask != "none" else [False] * 3
    return functools.partial(torch.ops.aten.convolution_backward.default, y, x, w, [y.shape[1]], stride, padding,
                             dilation, transposed, output_padding, groups, wanted)


def conv_tbc_call(torch, keys):
    dtype = keys.get("dtype", "f32")
    x, w = tensor(torch, keys["input"], dtype), tensor(torch, keys["weight"], dtype)
    pad = int(keys.get("pad", "0"))
    bias = tensor(torch, str(w.shape[2]), dtype)
    if keys.get("forward") == "1":
        return functools.partial(torch.ops.aten.conv_tbc.default, x, w, bias, pad)
    y = tensor(torch, f"{x.shape[0] + 2 * pad - w.shape[0] + 1}x{x.shape[1]}x{w.shape[2]}", dtype)
    return functools.partial(torch.ops.aten.conv_tbc_backward.default, y, x, w, bias, pad)


def avgpool_call(torch, keys):
    dtype = keys.get("dtype", "f32")
    x = tensor(torch, keys["input"], dtype)
    axes = x.dim() - 2
    if axes < 1:
        raise Declined("pooling without a batch axis")
    kernel = an_entry_an_axis("kernel", [], axes, keys)
    stride = an_entry_an_axis("stride", kernel, axes, keys)
    padding = an_entry_an_axis("padding", [0], axes, keys)
    ceil, include = keys.get("ceil") == "1", keys.get("count_include_pad", "1") == "1"
    divisor = int(keys.get("divisor", "0")) or None
    if axes == 1:  # aten has no backward of its own for 1-D: the 2-D one with an axis of one, as its forward does
        x = x.unsqueeze(2)
        kernel, stride, padding = [1] + kernel, [1] + stride, [0] + padding
    forward = torch.ops.aten.avg_pool3d if axes == 3 else torch.ops.aten.avg_pool2d
    if keys.get("forward") == "1":
        return functools.partial(forward.default, x, kernel, stride, padding, ceil, include, divisor)
    backward = torch.ops.aten.avg_pool3d_backward if axes == 3 else torch.ops.aten.avg_pool2d_backward
    y = torch.rand_like(forward(x, kernel, stride, padding, ceil, include, divisor))
    return functools.partial(backward.default, y, x, kernel, stride, padding, ceil, include, divisor)


CALLS = {"conv": conv_call, "conv_tbc": conv_tbc_call, "avgpool": avgpool_call}


def make_call(torch, text):
    """The whole operator with its arguments bound."""
    kind, keys = parse(text)
    if kind not in CALLS:
        raise Declined(f"no operator for {kind}")
    try:
        call = CALLS[kind](torch, keys)
        call()
        return call
    except (RuntimeError, ValueError, KeyError) as error:
        raise Declined(f"{type(error).__name__}: {error}") from error


def time_call(call, seconds):
    """Nanoseconds of whole calls, at least one."""
    times = []
    clock = time.perf_counter_ns
    end = clock() + int(seconds * 1e9)
    while True:
        begin = clock()
        call()
        now = clock()
        times.append(now - begin)
        if now >= end:
            return times


class Blas:
    """The BLAS that PyTorch calls. Debian's is OpenBLAS, whose number of threads PyTorch does not set; the packages of PyPI
    have MKL inside."""

    def __init__(self, torch):
        self.library, self.name = None, self.inside(torch)
        if self.name is None:
            with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
                files = sorted({line.split()[-1] for line in maps if "blas" in line})
            self.library = self.openblas(files)
            self.name = "BLAS " + (", ".join(files) or "unknown") + " (NOT OpenBLAS: 10 to 50 times slower)"

    @staticmethod
    def inside(torch):
        lines = torch.__config__.show().splitlines()
        return next((line.strip(" -").split(" for ")[0] for line in lines if "Math Kernel Library" in line), None)

    @staticmethod
    def openblas(files):
        """Debian's libblas.so.3 is a link into OpenBLAS's folder when that is installed."""
        libraries = (ctypes.CDLL(path) for path in files if "openblas" in path.rsplit("/", 1)[-1])
        return next((library for library in libraries if hasattr(library, "openblas_get_config")), None)

    def describe(self):
        if self.library is None:
            return self.name
        config = self.library.openblas_get_config
        config.restype = ctypes.c_char_p
        return config().decode().strip()

    def set_threads(self, threads):
        if self.library is not None:
            self.library.openblas_set_num_threads(threads)

    def variants(self, threads):
        """PyTorch's own loops call BLAS from several threads, where one thread a call is sometimes better."""
        return sorted({threads, 1}, reverse=True) if self.library is not None else [threads]


def onednn(torch):
    """The oneDNN inside PyTorch, with its version where PyTorch tells it."""
    if not torch.backends.mkldnn.is_available():
        return "without oneDNN"
    found = re.search(r"(?:MKL-DNN|oneDNN|OneDNN)\D* v?(\d+(?:\.\d+)+)", torch.__config__.show())
    return f"oneDNN {found[1]} inside" if found else "oneDNN inside"


def keep_freed_memory():
    """Results are allocated in each call. Memory that went back to the kernel would be paged in anew each time, which a
    training loop in its steady state does not pay either."""
    trim_threshold, mmap_threshold = -1, -3
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_threshold, 1 << 30)
    libc.mallopt(trim_threshold, (1 << 31) - 1)


class Session:
    """One problem, made and warm."""

    def __init__(self, torch, blas, threads, text):
        self.blas, self.call = blas, make_call(torch, text)
        first = {}
        for blas_threads in blas.variants(threads):
            blas.set_threads(blas_threads)
            first[blas_threads] = min(time_call(self.call, 0.02))
        self.variants = [v for v, ns in first.items() if ns <= HOPELESS * min(first.values())]

    def time(self, seconds):
        best = None
        for blas_threads in self.variants:
            self.blas.set_threads(blas_threads)
            time_call(self.call, SETTLING)
            times = time_call(self.call, seconds / len(self.variants))
            ns = statistics.median(times)
            if best is None or ns < best[0]:
                best = ns, len(times), blas_threads
        return f"ns {best[0]:.0f} {best[1]} blas{best[2]}"


def reply(line):
    print(line.replace("\n", " "), flush=True)


def serve(torch, threads):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    keep_freed_memory()
    gc.disable()
    blas = Blas(torch)
    reply(f"ready PyTorch {torch.__version__} {threads} threads, {blas.describe()}, {onednn(torch)}")
    session = None
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "quit":
            return
        if command == "problem":
            session = None  # its memory first
            gc.collect()
            try:
                session = Session(torch, blas, threads, rest)
                answer = "ok " + " ".join(f"blas{v}" for v in session.variants)
            except Declined as declined:
                answer = f"no {declined}"
        elif command == "time" and session is not None:
            answer = session.time(float(rest))
        else:
            answer = f"no such command here: {line.strip()}"
        one = session is not None and session.variants[-1] == 1  # OpenBLAS's threads slept through the last variant
        time.sleep(UNTIL_OPENMP_SLEEPS if one else UNTIL_OPENBLAS_SLEEPS)
        reply(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    threads = parser.parse_args().threads
    try:
        import torch
    except ImportError as error:
        sys.exit(f"pytorch_peer.py: {error} (PyPI: torch; Debian: python3-torch libopenblas0-pthread)")
    serve(torch, threads)


if __name__ == "__main__":
    main()
