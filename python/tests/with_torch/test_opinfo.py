# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples of every operator, with and without us: values, strides, who took them."""

import pytest
import torch
from counting import fell_back, taken
from judging import LAYOUT_SHAPES, gradients, judge, lies
from torch.testing._internal.common_methods_invocations import op_db

import retrograd.torch

OPERATORS = {
    "nn.functional.conv1d": "convolution_backward",
    "nn.functional.conv2d": "convolution_backward",
    "nn.functional.conv3d": "convolution_backward",
    "nn.functional.conv_transpose1d": "convolution_backward",
    "nn.functional.conv_transpose2d": "convolution_backward",
    "nn.functional.conv_transpose3d": "convolution_backward",
    "nn.functional.avg_pool1d": "avg_pool2d_backward",
    "nn.functional.avg_pool2d": "avg_pool2d_backward",
    "nn.functional.avg_pool3d": "avg_pool3d_backward",
}
TYPES = [torch.float32, torch.bfloat16, torch.float16]


def infos(name):
    found = [info for info in op_db if info.name == name]
    assert found, f"PyTorch has no samples of {name}"
    return found


def samples(name, dtype):
    """(function of operands, operands) of each sample."""
    for info in infos(name):
        for sample in info.sample_inputs("cpu", dtype, requires_grad=True):
            operands = [x for x in (sample.input, *sample.args) if isinstance(x, torch.Tensor)]
            rest = [x for x in sample.args if not isinstance(x, torch.Tensor)]
            keywords = dict(sample.kwargs)
            if isinstance(keywords.get("bias"), torch.Tensor):
                operands.append(keywords.pop("bias"))

            def function(*tensors, info=info, rest=rest, keywords=keywords):
                return info.op(*tensors, *rest, **keywords)

            yield function, operands


# PyTorch has no avg_pool3d of 16-bit types on CPUs.
SAMPLED = [(name, dtype) for name in OPERATORS for dtype in TYPES if dtype == torch.float32 or not name.endswith("pool3d")]


@pytest.mark.parametrize("name, dtype", SAMPLED, ids=str)
def test_samples(name, dtype):
    seen = 0
    for function, operands in samples(name, dtype):
        grad_output = torch.randn_like(function(*operands))
        before = taken()
        stock = gradients(function, operands, grad_output)
        assert taken() == before, "off, and yet taken"
        with retrograd.torch.enable(policy="always"):
            before = taken(OPERATORS[name]), fell_back()
            ours = gradients(function, operands, grad_output)
            after = taken(OPERATORS[name]), fell_back()
        if grad_output.numel() and all(x.numel() for x in operands):
            assert after == (before[0] + 1, before[1]), retrograd.torch.stats()
        else:
            assert after == (before[0], before[1] + 1)
        judge(function, operands, grad_output, ours)
        for mine, theirs in zip(ours, stock, strict=True):
            assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
            assert lies(mine) == lies(theirs), (mine.shape, mine.stride(), theirs.stride())
        seen += 1
    assert seen >= 4


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("pad", [0, 1, 3])
def test_conv_tbc(dtype, pad):
    def function(*operands):
        return torch.conv_tbc(*operands, pad)

    operands = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((7, 3, 5), (3, 5, 6), (6,))]
    grad_output = torch.randn_like(function(*operands))
    stock = gradients(function, operands, grad_output)
    with retrograd.torch.enable(policy="always"):
        ours = gradients(function, operands, grad_output)
    assert taken("conv_tbc_backward") == 1
    judge(function, operands, grad_output, ours)
    for mine, theirs in zip(ours, stock, strict=True):
        assert mine.shape == theirs.shape and lies(mine) == lies(theirs)


@pytest.mark.parametrize("name", OPERATORS)
def test_double_falls_back(name, always):
    for function, operands in samples(name, torch.float64):
        grad_output = torch.randn_like(function(*operands))
        gradients(function, operands, grad_output)
    assert taken() == 0
    assert fell_back() >= 4


LAYOUTS = [torch.contiguous_format, torch.channels_last]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("weight_layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("input_layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("shapes", LAYOUT_SHAPES, ids=str)
def test_layouts(shapes, input_layout, weight_layout, dtype):
    input_shape, weight_shape, groups, stride = shapes

    def function(*operands):
        return torch.nn.functional.conv2d(*operands, stride=stride, padding=weight_shape[2] // 2, groups=groups)

    operands = [
        torch.randn(input_shape, dtype=dtype).to(memory_format=input_layout).requires_grad_(),
        torch.randn(weight_shape, dtype=dtype).to(memory_format=weight_layout).requires_grad_(),
        torch.randn(weight_shape[0], dtype=dtype, requires_grad=True),
    ]
    grad_output = torch.randn_like(function(*operands))
    stock = gradients(function, operands, grad_output)
    with retrograd.torch.enable(policy="always"):
        ours = gradients(function, operands, grad_output)
    assert taken("convolution_backward") == 1
    judge(function, operands, grad_output, ours)
    for mine, theirs in zip(ours, stock, strict=True):
        assert lies(mine) == lies(theirs), (mine.shape, mine.stride(), theirs.stride())


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rank", [1, 3])
def test_layouts_of_other_ranks(rank, transposed):
    name = f"conv_transpose{rank}d" if transposed else f"conv{rank}d"

    def function(*operands):
        return getattr(torch.nn.functional, name)(*operands, padding=1)

    layouts = [torch.contiguous_format] + ([torch.channels_last_3d] if rank == 3 else [])
    for layout in layouts:
        operands = [torch.randn((2, 4) + (5,) * rank).to(memory_format=layout).requires_grad_(),
                    torch.randn((4, 4) + (3,) * rank).to(memory_format=layout).requires_grad_()]
        grad_output = torch.randn_like(function(*operands))
        stock = gradients(function, operands, grad_output)
        with retrograd.torch.enable(policy="always"):
            ours = gradients(function, operands, grad_output)
        judge(function, operands, grad_output, ours)
        for mine, theirs in zip(ours, stock, strict=True):
            assert lies(mine) == lies(theirs), (mine.shape, mine.stride(), theirs.stride())


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("shape", [(2, 8, 6), (2, 1, 6), (1, 8, 6), (3, 8, 2)], ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
def test_layouts_of_pooling(rank, shape, channels_last):
    def function(operand):
        return getattr(torch.nn.functional, f"avg_pool{rank}d")(operand, 2)

    layout = {2: torch.channels_last, 3: torch.channels_last_3d}[rank] if channels_last else torch.contiguous_format
    operand = torch.randn(shape[:2] + (shape[2],) * rank).to(memory_format=layout).requires_grad_()
    grad_output = torch.randn_like(function(operand))
    stock = gradients(function, [operand], grad_output)
    with retrograd.torch.enable(policy="always"):
        ours = gradients(function, [operand], grad_output)
    assert taken() == 1
    judge(function, [operand], grad_output, ours)
    assert lies(ours[0]) == lies(stock[0]), (ours[0].stride(), stock[0].stride())


@pytest.mark.parametrize("wanted", range(1, 8))
def test_masks(wanted, always):
    mask = [bool(wanted & 1), bool(wanted & 2), bool(wanted & 4)]
    grad_output, input, weight = torch.randn(2, 4, 6, 6), torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)

    def call(*operands):
        return torch.ops.aten.convolution_backward.default(*operands, [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask)

    ours = call(grad_output, input, weight)
    assert taken() == 1
    stock = call(*(x.double() for x in (grad_output, input, weight)))
    assert fell_back() == 1
    for mine, theirs, asked in zip(ours, stock, mask, strict=True):
        assert (mine is not None) == (theirs is not None) == asked
        if asked:
            torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_pooling_that_stock_does_not_have(dtype, always):
    grad_output = torch.randn(2, 3, 2, 2, 2).to(dtype)
    arguments = ([2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None)
    ours = torch.ops.aten.avg_pool3d_backward.default(grad_output, torch.ones(2, 3, 4, 4, 4, dtype=dtype), *arguments)
    assert taken() == 1
    assert torch.equal(ours, grad_output.repeat_interleave(2, 2).repeat_interleave(2, 3).repeat_interleave(2, 4) / 8)
