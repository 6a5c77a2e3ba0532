# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does with gradients besides computing them once."""

import pytest
import torch
from counting import fell_back, taken
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional

import retrograd.torch


def floats(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype, requires_grad=True)


# All are linear in each operand, so differences over a wide step have no error but rounding.
CASES = {
    "conv2d": (lambda x, w, b: functional.conv2d(x, w, b, padding=1), [(1, 2, 4, 4), (3, 2, 3, 3), (3,)]),
    "depthwise": (lambda x, w: functional.conv2d(x, w, padding=1, groups=2), [(1, 2, 4, 4), (2, 1, 3, 3)]),
    "conv1d": (lambda x, w: functional.conv1d(x, w, stride=2), [(2, 2, 7), (3, 2, 3)]),
    "conv3d": (lambda x, w: functional.conv3d(x, w), [(1, 1, 3, 3, 3), (2, 1, 2, 2, 2)]),
    "conv_transpose2d": (lambda x, w: functional.conv_transpose2d(x, w, stride=2, output_padding=1), [(1, 2, 2, 2), (2, 2, 3, 3)]),
    "conv_tbc": (lambda x, w, b: torch.conv_tbc(x, w, b, 1), [(4, 1, 2), (3, 2, 2), (2,)]),
    "avg_pool2d": (lambda x: functional.avg_pool2d(x, 2, padding=1, count_include_pad=False), [(1, 2, 4, 4)]),
    "avg_pool3d": (lambda x: functional.avg_pool3d(x, 2), [(1, 1, 4, 4, 4)]),
}
STEP = {"eps": 0.5, "atol": 1e-4, "rtol": 1e-4, "nondet_tol": 0.0}


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and is not a double")
@pytest.mark.filterwarnings("ignore:Input #1 requires gradient and is not a double")
@pytest.mark.filterwarnings("ignore:Input #2 requires gradient and is not a double")
@pytest.mark.parametrize("name", CASES)
def test_gradcheck(name, always):
    function, shapes = CASES[name]
    operands = [floats(*shape) for shape in shapes]
    assert gradcheck(function, operands, **STEP)
    assert taken() > 0
    assert fell_back() == 0


@pytest.mark.filterwarnings("ignore:Input #")
@pytest.mark.parametrize("name", CASES)
def test_gradgradcheck(name, always):
    function, shapes = CASES[name]
    operands = [floats(*shape) for shape in shapes]
    assert gradgradcheck(function, operands, **STEP)
    if name == "conv_tbc":  # its gradient is composite: PyTorch's own kernel records the graph
        assert retrograd.torch.stats()["conv_tbc_backward"]["fell_back"].keys() == {"a graph of the gradient is recorded"}
    else:
        assert taken() > 0


@pytest.mark.parametrize("name", CASES)
def test_gradcheck_in_double(name, always):
    function, shapes = CASES[name]
    operands = [floats(*shape, dtype=torch.float64) for shape in shapes]
    assert gradcheck(function, operands)
    assert gradgradcheck(function, operands)
    assert taken() == 0
    assert fell_back() > 0


def test_double_backward_warns_of_nothing(always, recwarn):
    x, w, b = floats(5, 2, 3), floats(3, 3, 4), floats(4)
    (first,) = torch.autograd.grad(torch.conv_tbc(x, w, b, 1).square().sum(), [w], create_graph=True)
    first.square().sum().backward()
    ours = x.grad
    x.grad = None
    with retrograd.torch.enable(policy="always"):
        retrograd.torch.disable()
        (first,) = torch.autograd.grad(torch.conv_tbc(x, w, b, 1).square().sum(), [w], create_graph=True)
        first.square().sum().backward()
    torch.testing.assert_close(ours, x.grad)
    assert not [w for w in recwarn if "autograd" in str(w.message)]


def network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.AvgPool2d(2),
        torch.nn.Conv2d(16, 16, 3, padding=1, groups=16), torch.nn.Conv2d(16, 8, 1), torch.nn.ReLU(),
        torch.nn.ConvTranspose2d(8, 4, 2, stride=2))


def gradients_of(model, x, autocast=False):
    model.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        output = model(x)
    output.float().square().mean().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def close(ours, stock, dtype):
    for mine, theirs in zip(ours, stock, strict=True):
        scale = theirs.abs().max()
        assert (mine - theirs).abs().max() <= 8 * torch.finfo(dtype).eps * scale + 1e-12


def test_autocast(off_before_and_after):
    model, x = network(), torch.randn(2, 3, 16, 16)
    stock = gradients_of(model, x, autocast=True)
    with retrograd.torch.enable(policy="always"):
        ours = gradients_of(model, x, autocast=True)
    assert taken("convolution_backward") == 4
    assert fell_back() == 0
    close(ours, stock, torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_channels_last(dtype):
    model = network().to(dtype).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 16, 16).to(dtype).to(memory_format=torch.channels_last)
    stock = gradients_of(model, x)
    with retrograd.torch.enable(policy="always"):
        ours = gradients_of(model, x)
    assert taken() == 5
    close(ours, stock, dtype)


def test_vmap_of_grad(always):
    weights, x = torch.randn(4, 3, 2, 3, 3), torch.randn(4, 1, 2, 6, 6)

    def loss(weight, sample):
        return functional.conv2d(sample, weight).square().sum()

    together = torch.func.vmap(torch.func.grad(loss))(weights, x)
    assert taken() > 0
    for one, weight, sample in zip(together, weights, x, strict=True):
        weight = weight.double().requires_grad_()
        loss(weight, sample.double()).backward()
        torch.testing.assert_close(one.double(), weight.grad, rtol=1e-5, atol=1e-4)


def test_checkpoint_and_anomaly_mode(always):
    from torch.utils.checkpoint import checkpoint

    model, x = network(), torch.randn(1, 3, 8, 8, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True):
        checkpoint(model, x, use_reentrant=False).sum().backward()
    assert taken() == 5
    assert x.grad is not None


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_profiler_sees_the_operator(always):
    x = floats(1, 2, 8, 8)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        functional.conv2d(x, floats(2, 2, 3, 3)).sum().backward()
    assert taken() == 1
    assert "aten::convolution_backward" in {event.key for event in profile.key_averages()}


def test_inference_tensors_and_expanded_gradients(always):
    """A sum's gradient has strides of 0; so have many others."""
    x, w = floats(2, 3, 8, 8), floats(4, 3, 3, 3)
    (ours,) = torch.autograd.grad(functional.conv2d(x, w).sum(), [x])
    assert taken() == 1
    exact = torch.autograd.grad(functional.conv2d(x.double(), w.double()).sum(), [x])[0]
    torch.testing.assert_close(ours, exact.float(), rtol=1e-5, atol=1e-5)
    with torch.inference_mode():
        value = torch.ops.aten.avg_pool2d_backward.default(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 4, 4), [2, 2], [2, 2], [0, 0],
                                                           False, True, None)
    assert value.sum() == 4
    assert taken() == 2


def test_special_values(always):
    x = torch.ones(1, 1, 5, 5)
    x[0, 0, 2, 2] = float("inf")
    x.requires_grad_()
    w = floats(1, 1, 3, 3)
    (grad_weight,) = torch.autograd.grad(functional.conv2d(x, w, padding=1).sum(), [w])
    assert torch.isinf(grad_weight).all()
    assert not torch.isnan(grad_weight).any()
