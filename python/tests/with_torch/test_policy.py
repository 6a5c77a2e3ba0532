# SPDX-License-Identifier: Apache-2.0
"""Policy auto: which shapes are left to PyTorch's own kernels."""

import pytest
import torch
from counting import fell_back, taken

import retrograd.torch

# input, weight, stride, groups, type, channels last
CASES = {
    "1 x 1 on planes": ((8, 96, 28, 28), (96, 96, 1, 1), 1, 1, torch.float32, False),
    "1 x 1, channels last": ((8, 96, 28, 28), (96, 96, 1, 1), 1, 1, torch.float32, True),
    "1 x 1 with a stride, channels last": ((8, 64, 28, 28), (128, 64, 1, 1), 2, 1, torch.float32, True),
    "3 x 3 of 64, channels last": ((4, 64, 28, 28), (64, 64, 3, 3), 1, 1, torch.float32, True),
    "depthwise, channels last": ((8, 96, 56, 56), (96, 1, 3, 3), 1, 96, torch.float32, True),
    "stem, channels last": ((8, 3, 112, 112), (32, 3, 3, 3), 2, 1, torch.float32, True),
    "1 x 1 with a stride in bfloat16": ((16, 64, 56, 56), (128, 64, 1, 1), 2, 1, torch.bfloat16, True),
    "1 x 1 of few channels in bfloat16": ((8, 24, 56, 56), (96, 24, 1, 1), 1, 1, torch.bfloat16, True),
}


@pytest.mark.parametrize("name", CASES)
def test_auto_takes(name):
    input_shape, weight_shape, stride, groups, dtype, channels_last = CASES[name]
    layout = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(input_shape).to(dtype).to(memory_format=layout).requires_grad_()
    weight = torch.randn(weight_shape).to(dtype).to(memory_format=layout).requires_grad_()
    retrograd.torch.reset_stats()
    with retrograd.torch.enable(policy="auto"):
        y = torch.nn.functional.conv2d(x, weight, stride=stride, padding=weight_shape[2] // 2, groups=groups)
        y.backward(torch.ones_like(y))
    expected = {"taken": 1, "fell_back": {}}
    assert retrograd.torch.stats()["convolution_backward"] == {**expected, "by_device": {"cpu": expected}}


def test_bfloat16_that_is_widened():
    """The gradient of a sum has strides of 0: no pairs to multiply. Where the processor has pairs, that is stock's."""
    import retrograd as arrays

    cpu = next(line for line in arrays.info()["devices"] if line.startswith("cpu:0"))
    has_pairs = "bf16 pairs" in cpu or "bf16 tiles" in cpu
    if "bf16 tiles" in cpu:
        pytest.skip("tile registers take it")
    x, weight = (torch.randn(shape).bfloat16().requires_grad_() for shape in ((1, 16, 32, 32, 32), (16, 16, 3, 3, 3)))
    reason = {"policy auto: stock is thought to be faster": 1}
    for policy in ("auto", "always"):
        retrograd.torch.reset_stats()
        with retrograd.torch.enable(policy=policy):
            torch.nn.functional.conv3d(x, weight, padding=1).sum().backward()
        left = has_pairs and policy == "auto"
        expected = {"taken": 0, "fell_back": reason} if left else {"taken": 1, "fell_back": {}}
        assert retrograd.torch.stats()["convolution_backward"] == {**expected, "by_device": {"cpu": expected}}, policy


def test_pooling_is_ours():
    with retrograd.torch.enable(policy="auto"):
        x = torch.randn(2, 64, 56, 56).to(memory_format=torch.channels_last).requires_grad_()
        torch.nn.functional.avg_pool2d(x, 3, 2, 1).sum().backward()
    assert taken("avg_pool2d_backward") == 1
    assert fell_back() == 0
