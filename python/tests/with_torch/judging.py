# SPDX-License-Identifier: Apache-2.0
"""Gradients of a function that is linear in each of its operands, and a bound for the error of each."""

import contextlib

import torch

LAYOUT_SHAPES = [  # input, weight, groups, stride: those that leave the layout open are here on purpose
    ((2, 8, 6, 5), (4, 8, 3, 3), 1, 1),
    ((2, 8, 6, 5), (8, 1, 3, 3), 8, 1),
    ((2, 8, 6, 5), (16, 1, 3, 3), 8, 2),
    ((2, 8, 1, 1), (4, 8, 1, 1), 1, 1),
    ((1, 1, 6, 5), (4, 1, 3, 3), 1, 1),
    ((2, 1, 6, 5), (1, 1, 3, 3), 1, 1),
    ((2, 3, 9, 9), (8, 3, 3, 3), 1, 2),
    ((2, 64, 8, 8), (64, 1, 7, 7), 64, 1),
    ((2, 8, 6, 5), (4, 8, 1, 1), 1, 1),
]


@contextlib.contextmanager
def tf32(allowed):
    """float32 with or without TF32, which PyTorch allows in convolutions unless it is told otherwise. The settings may be
    changed within, also after an import of PyTorch's own tests, which forbids that."""
    convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        before = convolutions.allow_tf32, products.allow_tf32
        convolutions.allow_tf32 = products.allow_tf32 = allowed
        try:
            yield
        finally:
            convolutions.allow_tf32, products.allow_tf32 = before


def lies(tensor):
    """Strides of axes that are longer than one; others say nothing."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def gradients(function, operands, grad_output):
    """As they come out of the backward operator: torch.autograd.grad does not copy them into another layout."""
    output = function(*operands)
    wanted = [operand for operand in operands if operand.requires_grad]
    return torch.autograd.grad(output, wanted, grad_output)


def _as_double(tensor, absolute):
    value = tensor.detach().double().contiguous()
    return (value.abs() if absolute else value).requires_grad_(tensor.requires_grad)


def judge(function, operands, grad_output, results, operand_error=0.0):
    """Asserts that every element of `results` is within the bound of its sum. The exact value comes from doubles. A sum of
    terms t in FP32 is off by a small multiple of 2^-24 times the sum of |t|, which the gradient of absolute values is;
    rounding to the type of the result adds half a unit of it, and rounding operands `operand_error` for each of the two.
    Doubles are contiguous: PyTorch 2.11's own avg_pool2d_backward of channels-last CUDA tensors is wrong by whole terms."""
    grad_output = grad_output.double().contiguous()
    exact = gradients(function, [_as_double(x, False) for x in operands], grad_output)
    sums = gradients(function, [_as_double(x, True) for x in operands], grad_output.abs())
    for result, value, magnitude in zip(results, exact, sums, strict=True):
        relative = torch.finfo(result.dtype).eps + 32 * 2.0**-24 + 2 * operand_error
        bound = magnitude * relative + torch.finfo(result.dtype).smallest_normal
        worst = ((result.double() - value).abs() / bound).max() if result.numel() else torch.zeros(())
        assert worst <= 1, f"an element of {tuple(result.shape)} {result.dtype} is off by {worst:.3g} times the bound"
