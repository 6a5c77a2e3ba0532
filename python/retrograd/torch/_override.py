# SPDX-License-Identifier: Apache-2.0
"""Switching it on and off."""

import json
import os
import threading
import warnings

from . import _build, _fallback, _pytorch
from ._pytorch import torch

POLICIES = ("auto", "always", "depthwise")

_lock = threading.RLock()
_shared = None  # the C++ part, once it is loaded
_current = None  # (operators, devices, policy), or None when off


class Override:
    """What `enable` returns. As a context manager it brings back, at its end, what was there before."""

    def __init__(self, operators, devices, policy, before):
        self.operators = operators  # the overridden ones; none where RETROGRAD_TORCH=0 keeps it off
        self.devices = devices  # of whose tensors
        self.policy = policy
        self._before = before

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        with _lock:
            if self._before is None:
                _switch_off()
            else:
                _switch_on(*self._before)

    def __repr__(self):
        if not self.operators:
            return "<retrograd.torch off>"
        return f"<retrograd.torch {', '.join(self.operators)}; on {', '.join(self.devices)}; policy {self.policy}>"


def _operators_of(ops):
    if isinstance(ops, str):
        ops = tuple(_fallback.OPERATORS) if ops == "all" else (ops,)
    names = []
    for name in ops:
        plain = name.removeprefix("aten::") if isinstance(name, str) else name
        if plain not in _fallback.OPERATORS:
            raise ValueError(f"ops has {name!r}, expected 'all' or some of {', '.join(_fallback.OPERATORS)}")
        names.append(plain)
    if not names:
        raise ValueError(f"ops is empty, expected 'all' or some of {', '.join(_fallback.OPERATORS)}")
    return tuple(name for name in _fallback.OPERATORS if name in names)


def _devices_of(devices):
    """The kinds of devices named; None for what is there."""
    if isinstance(devices, str):
        if devices == "all":
            return None
        devices = (devices,)
    devices = tuple(devices)
    for device in devices:
        if device not in _fallback.DEVICES:
            raise ValueError(f"devices has {device!r}, expected 'all' or some of {', '.join(_fallback.DEVICES)}")
    if not devices:
        raise ValueError(f"devices is empty, expected 'all' or some of {', '.join(_fallback.DEVICES)}")
    return tuple(device for device in _fallback.DEVICES if device in devices)


def _why_no_gpu():
    """What is missing for CUDA tensors: a sentence, or None."""
    if not torch.backends.cuda.is_built():
        return f"this PyTorch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return f"this PyTorch {torch.__version__} finds no NVIDIA GPU"
    if torch.cuda._is_in_bad_fork():
        return "this process was forked from one that had initialised CUDA"
    sentence = _shared.retrograd_torch_why_no_gpu()
    return None if sentence is None else sentence.decode(errors="replace")


def _found_devices(named):
    """Those named, or those that are there. Raises where one that is named is not there."""
    if named is not None and "cuda" not in named:
        return named
    sentence = _why_no_gpu()
    if sentence is None and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("retrograd.torch: a CUDA graph is being captured: enable before")
    if named is None:
        return ("cpu",) if sentence is not None else ("cpu", "cuda")
    if sentence is not None:
        raise RuntimeError(f"retrograd.torch: devices has 'cuda', and {sentence}")
    return named


def _policy_of(policy):
    named = os.environ.get("RETROGRAD_TORCH_POLICY")
    if named:
        if named in POLICIES:
            return named
        warnings.warn(f"RETROGRAD_TORCH_POLICY is {named!r}, expected one of {', '.join(POLICIES)}; it is ignored", stacklevel=3)
    if policy not in POLICIES:
        raise ValueError(f"policy is {policy!r}, expected one of {', '.join(POLICIES)}")
    return policy


def _kept_off():
    named = os.environ.get("RETROGRAD_TORCH")
    if named and named not in ("0", "1"):
        warnings.warn(f"RETROGRAD_TORCH is {named!r}, expected 0 or 1; it is ignored", stacklevel=3)
    return named == "0"


def _load():
    global _shared
    if _shared is None:
        _pytorch.check_version()
        _shared = _build.load(torch.__version__, _pytorch.folders())
        _fallback.define_operators(_shared.retrograd_torch_note_error)
    return _shared


def _raise_if(sentence):
    if sentence is not None:
        raise RuntimeError(f"retrograd.torch: {sentence.decode(errors='replace')}")


def _probe_calls(device):
    """A tiny call of each operator, and what must come out."""
    def tensor(*shape):
        return torch.ones(shape, dtype=torch.float32, device=device)

    aten = torch.ops.aten
    image, window = tensor(1, 1, 4, 4), [2, 2]
    return {
        "convolution_backward": (lambda: aten.convolution_backward.default(
            image, image, tensor(1, 1, 3, 3), [1], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])[1].sum(), 100.0),
        "conv_tbc_backward": (lambda: aten.conv_tbc_backward.default(
            tensor(4, 1, 1), tensor(4, 1, 1), tensor(1, 1, 1), tensor(1), 0)[1].sum(), 4.0),
        "avg_pool2d_backward": (lambda: aten.avg_pool2d_backward.default(
            tensor(1, 1, 2, 2), image, window, window, [0, 0], False, True, None).sum(), 4.0),
        "avg_pool3d_backward": (lambda: aten.avg_pool3d_backward.default(
            tensor(1, 1, 2, 2, 2), tensor(1, 1, 4, 4, 4), window + [2], window + [2], [0, 0, 0], False, True, None).sum(), 8.0),
    }


def _probe(operators, device):
    """Calls each operator once. PyTorch may accept a registration and not use it: only a call shows that."""
    from torch.utils._python_dispatch import _disable_current_modes

    with torch.no_grad(), _disable_current_modes():
        calls = _probe_calls(device)
        for name in operators:
            call, expected = calls[name]
            _shared.retrograd_torch_begin_probe()
            try:
                value = float(call())
            finally:
                taken = _shared.retrograd_torch_end_probe()
            if taken == 0:
                raise RuntimeError(f"retrograd.torch: aten::{name} of {device} tensors does not reach Retrograd in this "
                                   f"PyTorch {torch.__version__}")
            if value != expected:
                raise RuntimeError(f"retrograd.torch: a probe of aten::{name} on {device} gave {value}, expected {expected}")


def _switch_on(operators, devices, policy):
    global _current
    shared = _load()
    _switch_off()
    if torch.cuda._is_in_bad_fork():  # what the parent had comes back, as far as it can
        devices = tuple(device for device in devices if device != "cuda")
    _fallback.remember_originals(operators, devices)
    _fallback.take_the_warning()
    bits = [sum(1 << i for i, name in enumerate(names) if name in chosen)
            for names, chosen in ((_fallback.OPERATORS, operators), (_fallback.DEVICES, devices))]
    try:
        shared.retrograd_torch_set_policy(POLICIES.index("always"))  # for the probe
        _raise_if(shared.retrograd_torch_install(*bits))
        for device in devices:
            _probe(operators, device)
    except BaseException:
        shared.retrograd_torch_uninstall()
        raise
    shared.retrograd_torch_set_policy(POLICIES.index(policy))
    _current = (operators, devices, policy)


def _switch_off():
    global _current
    if _current is not None:
        _current = None
        _raise_if(_shared.retrograd_torch_uninstall())


def enable(ops="all", devices="all", policy="auto"):
    """Overrides PyTorch's backward operators by Retrograd's.

    ops: "all", or names: "convolution_backward", "conv_tbc_backward", "avg_pool2d_backward", "avg_pool3d_backward".
    devices: "all", which is CPUs, and NVIDIA GPUs where PyTorch and the library find one; or names: "cpu", "cuda".
        Tensors of other devices are left alone. GPUs are initialised, PyTorch's current one is probed.
    policy: "auto" takes what Retrograd is thought to compute faster; "always" what it can compute, which gives the same
        bits for every number of threads; "depthwise" depthwise convolutions only.

    RETROGRAD_TORCH=0 keeps it off, RETROGRAD_TORCH_POLICY names another policy, whatever the program says.
    Calling it again changes ops, devices and policy. Returns an `Override`, which is a context manager.

    Raises BuildError, a RuntimeError, where the C++ part cannot be built, and RuntimeError where PyTorch is too old,
    "cuda" is named and there is no GPU, or a probe call does not reach Retrograd.
    """
    operators, named, policy = _operators_of(ops), _devices_of(devices), _policy_of(policy)
    with _lock:
        before = _current
        if _kept_off():
            return Override((), (), policy, before)
        _load()
        devices = _found_devices(named)
        try:
            _switch_on(operators, devices, policy)
        except BaseException:
            if before is not None:
                _switch_on(*before)
            raise
        return Override(operators, devices, policy, before)


def disable():
    """Brings back the kernels that were there before. Plans and workspaces are given back."""
    with _lock:
        _switch_off()


def enabled():
    """Whether any operator is overridden now."""
    return _current is not None


def _counts():
    return json.loads(_shared.retrograd_torch_counts().decode())


def stats():
    """What became of the calls, operator by operator: {"taken": n, "fell_back": {reason: n}, "by_device": {"cuda": the same
    two, …}, "last_refusal": sentence}, and "plans" and "workspace_bytes" (of CPUs), which are kept for the next calls."""
    with _lock:
        if _shared is None:
            counts = {name: {"taken": 0, "fell_back": {}, "by_device": {}} for name in _fallback.OPERATORS}
            return {**counts, "policy": None, "devices": (), "plans": 0, "workspace_bytes": 0}
        _, devices, policy = _current or (None, (), None)
        return {**_counts(), "policy": policy, "devices": devices, "plans": _shared.retrograd_torch_plans(),
                "workspace_bytes": _shared.retrograd_torch_kept_bytes()}


def reset_stats():
    """Counts from zero."""
    with _lock:
        if _shared is not None:
            _shared.retrograd_torch_reset_counts()
