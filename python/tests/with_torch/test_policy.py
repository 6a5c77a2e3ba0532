# SPDX-License-Identifier: Apache-2.0
"""Policy auto: which shapes are left to PyTorch's own kernels."""

import pytest
import torch
from counting import fell_back, taken

import retrograd.torch

LEFT = {"policy auto: stock is thought to be faster": 1}

# input, weight, stride, groups, type, channels last, left to stock
CASES = {
    "1 x 1 on planes": ((8, 96, 28, 28), (96, 96, 1, 1), 1, 1, torch.float32, False, False),
    "1 x 1, channels last": ((8, 96, 28, 28), (96, 96, 1, 1), 1, 1, torch.float32, True, True),
    "1 x 1 with a stride, channels last": ((8, 64, 28, 28), (128, 64, 1, 1), 2, 1, torch.float32, True, False),
    "3 x 3 of 64, channels last": ((4, 64, 28, 28), (64, 64, 3, 3), 1, 1, torch.float32, True, False),
    "3 x 3 of 128, channels last": ((4, 128, 14, 14), (128, 128, 3, 3), 1, 1, torch.float32, True, False),
    "depthwise, channels last": ((8, 96, 56, 56), (96, 1, 3, 3), 1, 96, torch.float32, True, False),
    "stem, channels last": ((8, 3, 112, 112), (32, 3, 3, 3), 2, 1, torch.float32, True, False),
    "too little to change hands": ((1, 32, 4, 4), (32, 32, 1, 1), 1, 1, torch.float32, True, False),
    "1 x 1 in bfloat16": ((8, 96, 28, 28), (96, 96, 1, 1), 1, 1, torch.bfloat16, True, False),
    "1 x 1 with a stride in bfloat16": ((16, 64, 56, 56), (128, 64, 1, 1), 2, 1, torch.bfloat16, True, False),
    "1 x 1 of few channels in bfloat16": ((8, 24, 56, 56), (96, 24, 1, 1), 1, 1, torch.bfloat16, True, True),
    "1 x 1 of few channels in bfloat16 on planes": ((8, 24, 56, 56), (96, 24, 1, 1), 1, 1, torch.bfloat16, False, False),
}


@pytest.mark.parametrize("name", CASES)
def test_auto(name):
    input_shape, weight_shape, stride, groups, dtype, channels_last, left = CASES[name]
    layout = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(input_shape).to(dtype).to(memory_format=layout).requires_grad_()
    weight = torch.randn(weight_shape).to(dtype).to(memory_format=layout).requires_grad_()
    for policy in ("auto", "always"):
        retrograd.torch.reset_stats()
        with retrograd.torch.enable(policy=policy):
            torch.nn.functional.conv2d(x, weight, stride=stride, padding=weight_shape[2] // 2, groups=groups).sum().backward()
        counts = retrograd.torch.stats()["convolution_backward"]
        expected = {"taken": 0, "fell_back": LEFT} if left and policy == "auto" else {"taken": 1, "fell_back": {}}
        assert counts == {**expected, "by_device": {"cpu": expected}}, policy


def test_bfloat16_that_is_widened():
    """Pairs of images share a product: one image is multiplied in float32, which is stock's where the processor has pairs."""
    import retrograd as arrays

    cpu = next(line for line in arrays.info()["devices"] if line.startswith("cpu:0"))
    has_pairs, has_tiles = "bf16 pairs" in cpu, "bf16 tiles" in cpu
    if has_tiles:
        pytest.skip("tile registers take it")
    x, weight = (torch.randn(shape).bfloat16().requires_grad_() for shape in ((1, 16, 32, 32, 32), (16, 16, 3, 3, 3)))
    with retrograd.torch.enable(policy="auto"):
        torch.nn.functional.conv3d(x, weight, padding=1).sum().backward()
    assert (taken(), fell_back()) == ((0, 1) if has_pairs else (1, 0))


def test_pooling_is_ours():
    with retrograd.torch.enable(policy="auto"):
        x = torch.randn(2, 64, 56, 56).to(memory_format=torch.channels_last).requires_grad_()
        torch.nn.functional.avg_pool2d(x, 3, 2, 1).sum().backward()
    assert taken("avg_pool2d_backward") == 1
    assert fell_back() == 0
