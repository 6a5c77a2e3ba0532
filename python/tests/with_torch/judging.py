# SPDX-License-Identifier: Apache-2.0
"""Gradients of a function that is linear in each of its operands, and a bound for the error of each."""

import torch


def gradients(function, operands, grad_output):
    """As they come out of the backward operator: torch.autograd.grad does not copy them into another layout."""
    output = function(*operands)
    wanted = [operand for operand in operands if operand.requires_grad]
    return torch.autograd.grad(output, wanted, grad_output)


def _as_double(tensor, absolute):
    value = tensor.detach().double()
    return (value.abs() if absolute else value).requires_grad_(tensor.requires_grad)


def judge(function, operands, grad_output, results):
    """Asserts that every element of `results` is within the bound of its sum. The exact value comes from doubles. A sum of
    terms t in FP32 is off by a small multiple of 2^-24 times the sum of |t|, which the gradient of absolute values is;
    rounding to the type of the result adds half a unit of it."""
    exact = gradients(function, [_as_double(x, False) for x in operands], grad_output.double())
    sums = gradients(function, [_as_double(x, True) for x in operands], grad_output.double().abs())
    for result, value, magnitude in zip(results, exact, sums, strict=True):
        bound = magnitude * (torch.finfo(result.dtype).eps + 32 * 2.0**-24) + torch.finfo(result.dtype).smallest_normal
        worst = ((result.double() - value).abs() / bound).max() if result.numel() else torch.zeros(())
        assert worst <= 1, f"an element of {tuple(result.shape)} {result.dtype} is off by {worst:.3g} times the bound"
