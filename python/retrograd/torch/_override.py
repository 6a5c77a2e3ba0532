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
_current = None  # (operators, policy), or None when off


class Override:
    """What `enable` returns. As a context manager it brings back, at its end, what was there before."""

    def __init__(self, operators, policy, before):
        self.operators = operators  # the overridden ones; none where RETROGRAD_TORCH=0 keeps it off
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
        return f"<retrograd.torch {', '.join(self.operators) or 'off'}; policy {self.policy}>"


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


def _check_devices(devices):
    devices = (devices,) if isinstance(devices, str) else tuple(devices)
    for device in devices:
        if device == "cuda":
            raise NotImplementedError("devices has 'cuda', and retrograd.torch overrides operators of CPU tensors only")
        if device != "cpu":
            raise ValueError(f"devices has {device!r}, expected 'cpu'")
    if not devices:
        raise ValueError("devices is empty, expected ('cpu',)")


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


def _probe_calls():
    """A tiny call of each operator, and what must come out."""
    def tensor(*shape):
        return torch.ones(shape, dtype=torch.float32, device="cpu")

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


def _probe(operators):
    """Calls each operator once. PyTorch may accept a registration and not use it: only a call shows that."""
    from torch.utils._python_dispatch import _disable_current_modes

    with torch.no_grad(), _disable_current_modes():
        calls = _probe_calls()
        for name in operators:
            call, expected = calls[name]
            _shared.retrograd_torch_begin_probe()
            try:
                value = float(call())
            finally:
                taken = _shared.retrograd_torch_end_probe()
            if taken == 0:
                raise RuntimeError(f"retrograd.torch: aten::{name} does not reach Retrograd in this PyTorch {torch.__version__}")
            if value != expected:
                raise RuntimeError(f"retrograd.torch: a probe of aten::{name} gave {value}, expected {expected}")


def _switch_on(operators, policy):
    global _current
    shared = _load()
    _switch_off()
    _fallback.remember_originals(operators)
    _fallback.take_the_warning()
    bits = sum(1 << i for i, name in enumerate(_fallback.OPERATORS) if name in operators)
    try:
        shared.retrograd_torch_set_policy(POLICIES.index("always"))  # for the probe
        _raise_if(shared.retrograd_torch_install(bits))
        _probe(operators)
    except BaseException:
        shared.retrograd_torch_uninstall()
        raise
    shared.retrograd_torch_set_policy(POLICIES.index(policy))
    _current = (operators, policy)


def _switch_off():
    global _current
    if _current is not None:
        _current = None
        _raise_if(_shared.retrograd_torch_uninstall())


def enable(ops="all", devices=("cpu",), policy="auto"):
    """Overrides PyTorch's backward operators by Retrograd's.

    ops: "all", or names: "convolution_backward", "conv_tbc_backward", "avg_pool2d_backward", "avg_pool3d_backward".
    devices: ("cpu",). Tensors of other devices are left alone.
    policy: "auto" takes what Retrograd is thought to compute faster; "always" what it can compute, which gives the same
        bits for every number of threads; "depthwise" depthwise convolutions only.

    RETROGRAD_TORCH=0 keeps it off, RETROGRAD_TORCH_POLICY names another policy, whatever the program says.
    Calling it again changes ops and policy. Returns an `Override`, which is a context manager.

    Raises BuildError, a RuntimeError, where the C++ part cannot be built, and RuntimeError where PyTorch is too old or
    a probe call does not reach Retrograd.
    """
    operators, policy = _operators_of(ops), _policy_of(policy)
    _check_devices(devices)
    with _lock:
        before = _current
        if _kept_off():
            return Override((), policy, before)
        try:
            _switch_on(operators, policy)
        except BaseException:
            if before is not None:
                _switch_on(*before)
            raise
        return Override(operators, policy, before)


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
    """What became of the calls, operator by operator: {"taken": n, "fell_back": {reason: n}, "last_refusal": sentence},
    and "plans" and "workspace_bytes", which are kept for the next calls."""
    with _lock:
        if _shared is None:
            counts = {name: {"taken": 0, "fell_back": {}} for name in _fallback.OPERATORS}
            return {**counts, "policy": None, "plans": 0, "workspace_bytes": 0}
        return {**_counts(), "policy": _current[1] if _current else None, "plans": _shared.retrograd_torch_plans(),
                "workspace_bytes": _shared.retrograd_torch_kept_bytes()}


def reset_stats():
    """Counts from zero."""
    with _lock:
        if _shared is not None:
            _shared.retrograd_torch_reset_counts()
