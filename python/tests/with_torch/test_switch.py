# SPDX-License-Identifier: Apache-2.0
"""enable, disable, the context manager, environment, policies, counts, and what they say when something is wrong."""

import pytest
import torch
from counting import fell_back, taken
from judging import tf32

import retrograd.torch


def dense(dtype=torch.float32):
    layer = torch.nn.Conv2d(4, 4, 3, dtype=dtype)
    layer(torch.randn(1, 4, 8, 8, dtype=dtype)).sum().backward()


def depthwise():
    layer = torch.nn.Conv2d(4, 4, 3, groups=4)
    layer(torch.randn(1, 4, 8, 8)).sum().backward()


def test_probes_are_not_counted(always):
    assert taken() == 0
    assert fell_back() == 0


def test_on_and_off():
    dense()
    assert taken() == 0
    assert not retrograd.torch.enabled()
    retrograd.torch.enable(policy="always")
    assert retrograd.torch.enabled()
    dense()
    assert taken() == 1
    retrograd.torch.disable()
    dense()
    assert taken() == 1
    retrograd.torch.disable()  # again: nothing happens
    retrograd.torch.enable(policy="always")
    dense()
    assert taken() == 2


def test_context_brings_back_what_was_there():
    retrograd.torch.enable(ops="avg_pool2d_backward", policy="depthwise")
    with retrograd.torch.enable(policy="always") as override:
        assert override.policy == "always"
        assert len(override.operators) == 4
        dense()
    assert taken() == 1
    assert retrograd.torch.stats()["policy"] == "depthwise"
    dense()
    assert taken() == 1
    assert fell_back() == 0, "convolutions are no longer overridden"


def test_context_ends_with_an_exception():
    with pytest.raises(KeyError), retrograd.torch.enable():
        raise KeyError
    assert not retrograd.torch.enabled()


def test_some_operators():
    with retrograd.torch.enable(ops=["aten::avg_pool2d_backward"], policy="always"):
        dense()
        torch.nn.functional.avg_pool2d(torch.randn(1, 2, 4, 4, requires_grad=True), 2).sum().backward()
    assert taken("convolution_backward") == 0
    assert taken("avg_pool2d_backward") == 1


def test_policy_depthwise():
    with retrograd.torch.enable(policy="depthwise"):
        dense()
        assert taken() == 0
        assert retrograd.torch.stats()["convolution_backward"]["fell_back"] == {"policy depthwise: not depthwise": 1}
        depthwise()
    assert taken() == 1


def test_environment_policy(monkeypatch):
    monkeypatch.setenv("RETROGRAD_TORCH_POLICY", "depthwise")
    with retrograd.torch.enable(policy="always") as override:
        assert override.policy == "depthwise"
        dense()
    assert taken() == 0
    monkeypatch.setenv("RETROGRAD_TORCH_POLICY", "often")
    with pytest.warns(UserWarning, match="RETROGRAD_TORCH_POLICY is 'often', expected one of auto, always, depthwise"):
        assert retrograd.torch.enable(policy="always").policy == "always"


def test_environment_off(monkeypatch):
    monkeypatch.setenv("RETROGRAD_TORCH", "0")
    with retrograd.torch.enable(policy="always") as override:
        assert override.operators == ()
        assert not retrograd.torch.enabled()
        dense()
    assert taken() == 0
    monkeypatch.setenv("RETROGRAD_TORCH", "perhaps")
    with pytest.warns(UserWarning, match="RETROGRAD_TORCH is 'perhaps', expected 0 or 1"):
        retrograd.torch.enable()
    assert retrograd.torch.enabled()


@pytest.mark.parametrize("arguments, sentence", [
    ({"ops": "conv"}, "ops has 'conv', expected 'all' or some of convolution_backward"),
    ({"ops": []}, "ops is empty"),
    ({"ops": [3]}, "ops has 3"),
    ({"devices": ("tpu",)}, "devices has 'tpu'"),
    ({"devices": ()}, "devices is empty"),
    ({"policy": "never"}, "policy is 'never', expected one of auto, always, depthwise"),
    ({"policy": None}, "policy is None"),
])
def test_wrong_arguments(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        retrograd.torch.enable(**arguments)
    assert not retrograd.torch.enabled()


def test_devices_that_are_there():
    there = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    with retrograd.torch.enable() as override:
        assert override.devices == there
        assert retrograd.torch.stats()["devices"] == there
    with retrograd.torch.enable(devices="cpu") as override:
        assert override.devices == ("cpu",)
    assert retrograd.torch.stats()["devices"] == ()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu(monkeypatch):
    """Whoever lacks it is named, and what was enabled before stays."""
    retrograd.torch.enable(policy="always")
    for devices in ("cuda", ("cpu", "cuda")):
        with pytest.raises(RuntimeError, match="devices has 'cuda', and this PyTorch .* (finds no NVIDIA GPU|was built without CUDA)"):
            retrograd.torch.enable(devices=devices)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    with pytest.raises(RuntimeError, match="was built without CUDA"):
        retrograd.torch.enable(devices="cuda")
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(RuntimeError, match="and this libretrograd finds no NVIDIA GPU, or was built without CUDA"):
        retrograd.torch.enable(devices="cuda")
    assert retrograd.torch.enable().devices == ("cpu",)
    dense()
    assert taken() == 1


def kernels_of(operator):
    """Dispatch keys at which kernels of ours are registered."""
    lines = torch._C._dispatch_dump(f"aten::{operator}").splitlines()
    return {line.partition(":")[0].partition("[")[0] for line in lines if "control.cpp" in line}


def test_registered_for_both_devices():
    """What a machine without a GPU can show: the kernels are found before and registered after, at the right keys."""
    from retrograd.torch import _fallback, _override

    shared = _override._load()
    try:
        if torch.backends.cuda.is_built():
            _fallback.remember_originals(_fallback.OPERATORS, ("cpu", "cuda"))
        assert shared.retrograd_torch_install(0b1111, 0b10) is None
        assert kernels_of("convolution_backward") == {"CUDA"}
        assert kernels_of("conv_tbc_backward") == {"AutogradCUDA"}
        assert shared.retrograd_torch_install(0b0001, 0b11) is None
        assert kernels_of("convolution_backward") == {"CPU", "CUDA"}
        assert kernels_of("avg_pool2d_backward") == set()
    finally:
        shared.retrograd_torch_uninstall()
    assert kernels_of("convolution_backward") == set()


def test_tf32_is_what_the_user_says():
    """Both ways to say it, at any time. PyTorch's default is TF32 for convolutions and not for matrix products."""
    from retrograd.torch import _override

    shared = _override._load()

    def seen():
        return shared.retrograd_torch_tf32(0), shared.retrograd_torch_tf32(1)

    assert seen() == (1, 0)
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    with tf32(False):
        assert seen() == (0, 0)
        for convolutions in (False, True):
            for products in (True, False):
                cudnn.allow_tf32, matmul.allow_tf32 = convolutions, products
                assert seen() == (convolutions, products)
        cudnn.conv.fp32_precision = "ieee"
        assert seen()[0] == 0
        cudnn.conv.fp32_precision = "tf32"
        assert seen()[0] == 1
    assert seen() == (1, 0)


def test_reasons_are_counted(always):
    dense(torch.float64)
    empty = torch.randn(0, 4, 8, 8, requires_grad=True)
    torch.nn.functional.conv2d(empty, torch.randn(4, 4, 3, 3, requires_grad=True)).sum().backward()
    counts = retrograd.torch.stats()["convolution_backward"]
    assert counts["taken"] == 0
    assert counts["fell_back"] == {"element type is not float32, float16 or bfloat16": 1, "a tensor without elements": 1}
    assert counts["by_device"] == {"cpu": {"taken": 0, "fell_back": counts["fell_back"]}}
    retrograd.torch.reset_stats()
    assert retrograd.torch.stats()["convolution_backward"] == {"taken": 0, "fell_back": {}, "by_device": {}}


def test_plans_are_kept_and_given_back(always):
    for _ in range(3):
        dense()
    assert retrograd.torch.stats()["plans"] >= 1
    before = retrograd.torch.stats()["plans"]
    dense()
    assert retrograd.torch.stats()["plans"] == before
    retrograd.torch.disable()
    stats = retrograd.torch.stats()
    assert stats["plans"] == 0 and stats["workspace_bytes"] == 0 and stats["policy"] is None


def test_more_problems_than_the_cache_holds(always):
    pool = torch.ops.aten.avg_pool2d_backward.default
    for width in range(2, 4200):
        pool(torch.ones(1, 1, 1, width // 2), torch.ones(1, 1, 2, width), [2, 2], [2, 2], [0, 0], False, True, None)
    assert retrograd.torch.stats()["plans"] == 4096
    assert taken() == 4198


BAD_CALLS = {
    "channels": (torch.ones(1, 4, 6, 6), torch.ones(1, 3, 8, 8), torch.ones(4, 5, 3, 3), [4], [1, 1], [0, 0], [1, 1], False,
                 [0, 0], 1, [True] * 3),
    "sizes": (torch.ones(1, 4, 9, 9), torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1], False,
              [0, 0], 1, [True] * 3),
    "stride": (torch.ones(1, 4, 6, 6), torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3), [4], [0, 0], [0, 0], [1, 1], False,
               [0, 0], 1, [True] * 3),
    "groups": (torch.ones(1, 4, 6, 6), torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1], False,
               [0, 0], 0, [True] * 3),
    "types": (torch.ones(1, 4, 6, 6), torch.ones(1, 3, 8, 8).half(), torch.ones(4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1], False,
              [0, 0], 1, [True] * 3),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_raise_what_stock_raises(name):
    with pytest.raises(RuntimeError) as stock:
        torch.ops.aten.convolution_backward.default(*BAD_CALLS[name])
    with retrograd.torch.enable(policy="always"), pytest.raises(RuntimeError) as ours:
        torch.ops.aten.convolution_backward.default(*BAD_CALLS[name])
    assert str(stock.value).splitlines()[0] in str(ours.value)
    assert taken() == 0
    assert fell_back() == 1


def test_bad_pooling_raises(always):
    pool = torch.ops.aten.avg_pool2d_backward.default
    with pytest.raises(RuntimeError, match="divisor must be not zero"):
        pool(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 4, 4), [2, 2], [2, 2], [0, 0], False, True, 0)
    with pytest.raises(RuntimeError):
        pool(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 4, 4), [2, 2], [2, 2], [0, 0], False, True, None)
    assert taken() == 0
    assert "last_refusal" in retrograd.torch.stats()["avg_pool2d_backward"]
