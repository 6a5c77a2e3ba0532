# SPDX-License-Identifier: Apache-2.0
"""torch.compile: compiled graphs call the operators through the dispatcher and assert how results lie."""

import shutil

import pytest
import torch
from counting import taken
from torch import nn

import retrograd.torch

needs_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="inductor needs a C++ compiler")


def network():
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.AvgPool2d(3, 2, 1),
        nn.Conv2d(8, 8, 1), nn.ReLU(), nn.ConvTranspose2d(8, 4, 2, stride=2))


def gradients(model, parameters, x):
    for parameter in parameters:
        parameter.grad = None
    x = x.detach().requires_grad_()
    model(x).square().mean().backward()
    return [x.grad] + [parameter.grad for parameter in parameters]


def compare(compiled, model, x):
    parameters = list(model.parameters())
    exact_model = network().double()
    exact_model.load_state_dict(model.state_dict())
    exact = gradients(exact_model, list(exact_model.parameters()), x.double())
    ours = gradients(compiled, parameters, x)
    for mine, theirs in zip(ours, exact, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-6)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("backend, dynamic", [
    ("aot_eager", False),
    pytest.param("inductor", False, marks=needs_compiler),
    pytest.param("inductor", True, marks=needs_compiler),
])
def test_compiled(backend, dynamic, layout, always):
    model = network().to(memory_format=layout)
    compiled = torch.compile(model, backend=backend, dynamic=dynamic)
    for size in (12, 16) if dynamic else (12,):
        before = taken("convolution_backward")
        compare(compiled, model, torch.randn(2, 4, size, size).to(memory_format=layout))
        assert taken("convolution_backward") == before + 4


@needs_compiler
def test_switched_without_compiling_again():
    model = network()
    compiled = torch.compile(model, backend="inductor")
    x = torch.randn(2, 4, 12, 12)
    compare(compiled, model, x)
    assert taken() == 0
    with torch.compiler.set_stance("fail_on_recompile"):
        with retrograd.torch.enable(policy="always"):
            compare(compiled, model, x)
        assert taken("convolution_backward") == 4
        compare(compiled, model, x)
        assert taken("convolution_backward") == 4
