# SPDX-License-Identifier: Apache-2.0
"""retrograd.torch, and arrays with DLPack, on an NVIDIA GPU.

With pytest as the other tests (scripts/torch-test), or by itself, on a machine that has PyTorch, a compiler and no pytest:

    RETROGRAD_LIBRARY=.../libretrograd.so.0 PYTHONPATH=python python3 python/tests/with_torch/test_cuda.py [--compile] [words]

runs everything whose name has all of the words, prints what failed and why, and what was skipped and why. With
`--device cpu` the tests that need no GPU run on CPU tensors: a check of the tests themselves."""

import importlib.util
import itertools
import os
import sys
import threading
import time
import traceback
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from counting import fell_back, taken
from judging import LAYOUT_SHAPES, gradients, judge, lies, tf32
from torch.nn import functional

import retrograd.torch

try:
    import pytest
except ImportError:
    pytest = None

ALONE = __name__ == "__main__"
DEVICE = "cpu" if ALONE and "--device" in sys.argv and sys.argv[sys.argv.index("--device") + 1 :][:1] == ["cpu"] else "cuda"
WITH_COMPILE = not ALONE or "--compile" in sys.argv
TYPES = [torch.float32, torch.float16, torch.bfloat16]
TF32_ERROR = 2.0**-10  # relative, of an operand: ten bits are left, cut off by some of cuDNN's kernels

if pytest is not None:
    pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no NVIDIA GPU")


class Skipped(Exception):
    """Why a case is not run."""


def skip(reason):
    if pytest is not None and not ALONE:
        pytest.skip(reason)
    raise Skipped(reason)


def need_gpu():
    if DEVICE != "cuda":
        skip("on a GPU only")


def each(**lists):
    """Runs a test with every combination: pytest's parametrize, where there may be no pytest."""
    def decorate(function):
        if pytest is not None and not ALONE:
            for name, values in lists.items():
                function = pytest.mark.parametrize(name, list(values), ids=str)(function)
            return function
        function.cases = [dict(zip(lists, values)) for values in itertools.product(*lists.values())]
        return function

    return decorate


def enable(policy="always", **arguments):
    return retrograd.torch.enable(devices=DEVICE, policy=policy, **arguments)


def floats(*shape, dtype=torch.float32, layout=torch.contiguous_format, grad=True):
    value = torch.randn(shape, device=DEVICE).to(dtype)
    return value.to(memory_format=layout).requires_grad_(grad)


def check(function, operands, operator, grad_output=None):
    """Ours against exact values, and against stock in where results lie; exactly one call, and it is ours."""
    if grad_output is None:
        grad_output = torch.randn_like(function(*operands))
    with tf32(False):
        stock = gradients(function, operands, grad_output)
        with enable():
            before = taken(operator), fell_back()
            ours = gradients(function, operands, grad_output)
            assert (taken(operator), fell_back()) == (before[0] + 1, before[1]), retrograd.torch.stats()[operator]
        assert retrograd.torch.stats()[operator]["by_device"].keys() == {DEVICE}
        judge(function, operands, grad_output, ours)
    for mine, theirs in zip(ours, stock, strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype and mine.device == theirs.device
        assert lies(mine) == lies(theirs), f"shape {tuple(mine.shape)}: strides {mine.stride()}, stock has {theirs.stride()}"


# Function, input, weight, arguments: what PyTorch's own samples of these operators vary.
CONVOLUTIONS = {
    "conv1d": (functional.conv1d, (2, 4, 15), (6, 4, 3), {"padding": 1}),
    "conv1d strided": (functional.conv1d, (3, 4, 15), (6, 2, 3), {"stride": 2, "groups": 2}),
    "conv1d depthwise": (functional.conv1d, (2, 16, 40), (16, 1, 31), {"padding": 15, "groups": 16}),
    "conv1d dilated": (functional.conv1d, (1, 4, 15), (4, 4, 3), {"dilation": 2, "padding": 2}),
    "conv1d unbatched": (functional.conv1d, (4, 15), (6, 4, 3), {}),
    "conv2d": (functional.conv2d, (2, 8, 10, 9), (16, 8, 3, 3), {"padding": 1}),
    "conv2d strided": (functional.conv2d, (2, 8, 11, 9), (16, 8, 3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "conv2d pointwise": (functional.conv2d, (2, 32, 14, 14), (64, 32, 1, 1), {}),
    "conv2d pointwise strided": (functional.conv2d, (2, 32, 14, 14), (64, 32, 1, 1), {"stride": 2}),
    "conv2d dilated": (functional.conv2d, (2, 4, 12, 12), (8, 4, 3, 3), {"dilation": 2, "padding": 2}),
    "conv2d grouped": (functional.conv2d, (2, 12, 9, 9), (18, 4, 3, 3), {"groups": 3}),
    "conv2d depthwise": (functional.conv2d, (2, 32, 14, 14), (32, 1, 3, 3), {"padding": 1, "groups": 32}),
    "conv2d depthwise 7": (functional.conv2d, (2, 24, 14, 14), (24, 1, 7, 7), {"padding": 3, "groups": 24}),
    "conv2d multiplier": (functional.conv2d, (2, 8, 9, 9), (16, 1, 3, 3), {"groups": 8}),
    "conv2d stem": (functional.conv2d, (2, 3, 30, 30), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    "conv2d patches": (functional.conv2d, (2, 3, 16, 16), (24, 3, 4, 4), {"stride": 4}),
    "conv2d same": (functional.conv2d, (1, 4, 8, 8), (4, 4, 3, 3), {"padding": "same"}),
    "conv2d odd channels": (functional.conv2d, (2, 5, 8, 8), (7, 5, 3, 3), {"padding": 1}),
    "conv2d larger": (functional.conv2d, (8, 64, 28, 28), (128, 64, 3, 3), {"padding": 1}),
    "conv2d unbatched": (functional.conv2d, (4, 8, 8), (4, 4, 3, 3), {}),
    "conv3d": (functional.conv3d, (2, 4, 6, 7, 8), (8, 4, 3, 3, 3), {"padding": 1}),
    "conv3d strided": (functional.conv3d, (1, 4, 8, 8, 8), (8, 4, 2, 2, 2), {"stride": 2}),
    "conv3d depthwise": (functional.conv3d, (1, 8, 6, 6, 6), (8, 1, 3, 3, 3), {"padding": 1, "groups": 8}),
    "transposed 1d": (functional.conv_transpose1d, (2, 4, 9), (4, 6, 3), {"stride": 2, "output_padding": 1}),
    "transposed 2d": (functional.conv_transpose2d, (2, 16, 7, 7), (16, 8, 2, 2), {"stride": 2}),
    "transposed 2d padded": (functional.conv_transpose2d, (2, 4, 7, 7), (4, 4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed 2d grouped": (functional.conv_transpose2d, (2, 8, 5, 5), (8, 2, 3, 3), {"groups": 4, "dilation": 2}),
    "transposed 3d": (functional.conv_transpose3d, (1, 8, 4, 4, 4), (8, 4, 2, 2, 2), {"stride": 2}),
}


@each(name=CONVOLUTIONS, dtype=TYPES)
def test_convolutions(name, dtype):
    function, input_shape, weight_shape, arguments = CONVOLUTIONS[name]
    if DEVICE == "cpu" and name == "conv1d depthwise":
        skip("PyTorch's own forward pass does not return from it in 16 bits (2.15, oneDNN without AMX)")
    transposed = function.__name__.startswith("conv_transpose")
    channels = weight_shape[1] * arguments.get("groups", 1) if transposed else weight_shape[0]
    operands = [floats(*shape, dtype=dtype) for shape in (input_shape, weight_shape, (channels,))]
    check(lambda *tensors: function(*tensors, **arguments), operands, "convolution_backward")


POOLINGS = {
    "1d": (functional.avg_pool1d, (2, 4, 15), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "2d": (functional.avg_pool2d, (2, 8, 14, 13), {"kernel_size": 2}),
    "2d overlapping": (functional.avg_pool2d, (2, 8, 14, 13), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "2d ceil": (functional.avg_pool2d, (2, 3, 14, 13), {"kernel_size": (3, 2), "stride": 2, "ceil_mode": True}),
    "2d without padding": (functional.avg_pool2d, (2, 3, 9, 9), {"kernel_size": 3, "stride": 1, "padding": 1, "count_include_pad": False}),
    "2d divisor": (functional.avg_pool2d, (2, 3, 9, 9), {"kernel_size": 3, "divisor_override": 5}),
    "2d global": (functional.avg_pool2d, (4, 64, 7, 7), {"kernel_size": 7}),
    "2d unbatched": (functional.avg_pool2d, (3, 8, 8), {"kernel_size": 2}),
    "3d": (functional.avg_pool3d, (2, 4, 6, 7, 8), {"kernel_size": 2}),
    "3d overlapping": (functional.avg_pool3d, (2, 4, 6, 7, 8), {"kernel_size": 3, "stride": 2, "padding": 1}),
}


@each(name=POOLINGS, channels_last=[False, True], dtype=TYPES)
def test_poolings(name, channels_last, dtype):
    function, shape, arguments = POOLINGS[name]
    if DEVICE == "cpu" and name.startswith("3d") and dtype != torch.float32:
        skip("PyTorch has no avg_pool3d of 16-bit types on CPUs")
    layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(shape), torch.contiguous_format)
    operand = floats(*shape, dtype=dtype, layout=layout if channels_last else torch.contiguous_format)
    operator = "avg_pool3d_backward" if name.startswith("3d") else "avg_pool2d_backward"
    check(lambda x: function(x, **arguments), [operand], operator)


@each(pad=[0, 1, 3], dtype=TYPES)
def test_conv_tbc(pad, dtype):
    operands = [floats(*shape, dtype=dtype) for shape in ((17, 3, 8), (3, 8, 16), (16,))]
    check(lambda *tensors: torch.conv_tbc(*tensors, pad), operands, "conv_tbc_backward")


LAYOUTS = [torch.contiguous_format, torch.channels_last]


@each(shapes=LAYOUT_SHAPES, input_layout=LAYOUTS, weight_layout=LAYOUTS, dtype=TYPES)
def test_layouts(shapes, input_layout, weight_layout, dtype):
    input_shape, weight_shape, groups, stride = shapes
    operands = [floats(*input_shape, dtype=dtype, layout=input_layout), floats(*weight_shape, dtype=dtype, layout=weight_layout),
                floats(weight_shape[0], dtype=dtype)]
    check(lambda *tensors: functional.conv2d(*tensors, stride=stride, padding=weight_shape[2] // 2, groups=groups), operands,
          "convolution_backward")


@each(transposed=[False, True], input_last=[False, True], weight_last=[False, True], dtype=TYPES)
def test_layouts_3d(transposed, input_last, weight_last, dtype):
    function = functional.conv_transpose3d if transposed else functional.conv3d
    layouts = [torch.channels_last_3d if last else torch.contiguous_format for last in (input_last, weight_last)]
    operands = [floats(2, 8, 5, 6, 7, dtype=dtype, layout=layouts[0]), floats(8, 8, 3, 3, 3, dtype=dtype, layout=layouts[1])]
    check(lambda *tensors: function(*tensors, padding=1), operands, "convolution_backward")


def test_gradients_with_strides_of_their_own():
    """Of a sum, which has strides of 0, and of a slice."""
    operands = [floats(2, 8, 9, 9), floats(16, 8, 3, 3)]
    check(functional.conv2d, operands, "convolution_backward", torch.ones((), device=DEVICE).expand(2, 16, 7, 7))
    check(functional.conv2d, operands, "convolution_backward", floats(2, 20, 9, 11, grad=False)[:, 1:17, 1:8, 2:9])


@each(wanted=range(1, 8))
def test_masks(wanted):
    """Inductor asks for no grad_bias on GPUs."""
    mask = [bool(wanted >> i & 1) for i in range(3)]
    operands = [floats(2, 4, 6, 6, grad=False), floats(2, 3, 8, 8, grad=False), floats(4, 3, 3, 3, grad=False)]

    def call(*tensors):
        return torch.ops.aten.convolution_backward.default(*tensors, [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask)

    exact = call(*(x.double() for x in operands))
    with tf32(False), enable():
        ours = call(*operands)
        assert taken() == 1 and fell_back() == 0
    for one, mine, theirs in zip(mask, ours, exact, strict=True):
        assert one == (mine is not None)
        if one:
            torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-4)


def without_expecttest():
    """PyTorch's samples import it for a base class of tests, which nothing here uses."""
    if importlib.util.find_spec("expecttest") is None:
        module = types.ModuleType("expecttest")
        module.TestCase, module.ACCEPT = unittest.TestCase, False
        sys.modules["expecttest"] = module


def test_samples_of_pytorch():
    """OpInfo, where its imports are there."""
    without_expecttest()
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        skip(f"PyTorch's own samples cannot be imported: {error}")
    names = [f"nn.functional.{kind}{rank}d" for kind in ("conv", "conv_transpose", "avg_pool") for rank in (1, 2, 3)]
    seen, failures = 0, []
    with tf32(False):
        for info in (info for info in op_db if info.name in names):
            for dtype in TYPES:
                if DEVICE == "cpu" and info.name.endswith("pool3d") and dtype != torch.float32:
                    continue  # PyTorch has none there
                for sample in info.sample_inputs(DEVICE, dtype, requires_grad=True):
                    operands = [x for x in (sample.input, *sample.args, sample.kwargs.get("bias")) if isinstance(x, torch.Tensor)]
                    rest = [x for x in sample.args if not isinstance(x, torch.Tensor)]
                    keywords = {k: v for k, v in sample.kwargs.items() if not isinstance(v, torch.Tensor)}

                    def function(*tensors, info=info, rest=rest, keywords=keywords):
                        return info.op(*tensors, *rest, **keywords)

                    grad_output = torch.randn_like(function(*operands))
                    stock = gradients(function, operands, grad_output)
                    with enable():
                        before = taken()
                        ours = gradients(function, operands, grad_output)
                        whole = grad_output.numel() and all(x.numel() for x in operands)
                        if taken() != before + (1 if whole else 0):
                            failures.append(f"{info.name} {dtype} {sample}: not taken")
                    try:
                        judge(function, operands, grad_output, ours)
                        assert [lies(x) for x in ours] == [lies(x) for x in stock], "strides"
                    except AssertionError as error:
                        failures.append(f"{info.name} {dtype} {[tuple(x.shape) for x in operands]} {rest} {keywords}: {error}")
                    seen += 1
    assert not failures, f"{len(failures)} of {seen}: " + "; ".join(failures[:5])
    assert seen >= 200


@each(allowed=[False, True], way=["allow_tf32", "fp32_precision"])
def test_tf32(allowed, way):
    """Convolutions follow the setting at the time of the call."""
    need_gpu()
    operands = [floats(8, 64, 28, 28), floats(64, 64, 3, 3), floats(64)]

    def function(*tensors):
        return functional.conv2d(*tensors, padding=1)

    grad_output = torch.randn_like(function(*operands))
    with tf32(False), enable():
        gradients(function, operands, grad_output)
        plans = retrograd.torch.stats()["plans"]
        if way == "allow_tf32":
            torch.backends.cudnn.allow_tf32 = allowed
        else:
            torch.backends.cudnn.conv.fp32_precision = "tf32" if allowed else "ieee"
        ours = gradients(function, operands, grad_output)
        assert taken() == 2
        assert retrograd.torch.stats()["plans"] == plans + (1 if allowed else 0)
    judge(function, operands, grad_output, ours, TF32_ERROR if allowed else 0.0)


def test_tf32_does_not_touch_16_bits():
    need_gpu()
    operands = [floats(2, 8, 9, 9, dtype=torch.float16), floats(8, 8, 3, 3, dtype=torch.float16)]
    results = []
    with enable():
        plans = None
        for allowed in (False, True):
            with tf32(allowed):
                results.append(gradients(functional.conv2d, operands, torch.ones(2, 8, 7, 7, device=DEVICE, dtype=torch.float16)))
            plans = plans or retrograd.torch.stats()["plans"]
        assert retrograd.torch.stats()["plans"] == plans
    for mine, theirs in zip(*results, strict=True):
        assert torch.equal(mine, theirs)


def test_other_streams():
    """Operands that are made late on a stream of the user's, and results read on it: no other stream will do."""
    need_gpu()
    function, source = functional.conv2d, [floats(4, 32, 28, 28, grad=False), floats(32, 32, 3, 3, grad=False)]
    grad_output = floats(4, 32, 26, 26, grad=False)
    with tf32(False), enable():
        expected = gradients(function, [x.clone().requires_grad_() for x in source], grad_output)
        for _ in range(5):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                operands = [torch.zeros_like(x) for x in source]
                torch.cuda._sleep(20_000_000)  # about 10 ms
                for late, value in zip(operands, source, strict=True):
                    late.copy_(value)
                ours = gradients(function, [x.requires_grad_() for x in operands], grad_output)
                sums = [x.double().sum() for x in ours]
            stream.synchronize()
            for mine, theirs, total in zip(ours, expected, sums, strict=True):
                assert torch.equal(mine, theirs)
                assert torch.equal(total, theirs.double().sum())
        assert fell_back() == 0


def network(channels=16):
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, channels, 3, padding=1), torch.nn.ReLU(), torch.nn.AvgPool2d(2),
        torch.nn.Conv2d(channels, channels, 3, padding=1, groups=channels), torch.nn.Conv2d(channels, 8, 1), torch.nn.ReLU(),
        torch.nn.ConvTranspose2d(8, 4, 2, stride=2)).to(DEVICE)


@each(dtype=TYPES, channels_last=[False, True])
def test_graph_capture(dtype, channels_last):
    """A captured backward pass, replayed with other numbers, gives the bits of an ordinary one."""
    need_gpu()
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = network().to(dtype).to(memory_format=layout)
    x = floats(4, 3, 32, 32, dtype=dtype, layout=layout)
    leaves = [x, *model.parameters()]

    def step():
        return torch.autograd.grad(model(x).square().sum(), leaves)

    with tf32(False), enable():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        before = taken()
        with torch.cuda.graph(graph):
            captured = step()
        assert taken() == before + 5 and fell_back() == 0
        for _ in range(3):
            with torch.no_grad():
                x.copy_(torch.randn_like(x))
            graph.replay()
            replayed = [value.clone() for value in captured]
            for mine, theirs in zip(replayed, step(), strict=True):
                if not torch.equal(mine, theirs):  # the forward pass is PyTorch's, whose bits may differ
                    scale = theirs.abs().max().double()
                    assert (mine.double() - theirs.double()).abs().max() <= 16 * torch.finfo(dtype).eps * scale
    # What is captured needs no override any more.
    graph.replay()
    torch.cuda.synchronize()


def close(ours, stock, dtype):
    for mine, theirs in zip(ours, stock, strict=True):
        assert (mine.double() - theirs.double()).abs().max() <= 16 * torch.finfo(dtype).eps * theirs.double().abs().max() + 1e-12


@each(dtype=[torch.float16, torch.bfloat16], channels_last=[False, True])
def test_autocast(dtype, channels_last):
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model, x = network().to(memory_format=layout), floats(2, 3, 16, 16, layout=layout)

    def step():
        model.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype):
            output = model(x)
        output.float().square().mean().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    stock = step()
    with enable():
        ours = step()
    assert taken("convolution_backward") == 4 and taken("avg_pool2d_backward") == 1 and fell_back() == 0
    close(ours, stock, dtype)


def test_grad_scaler():
    """A few steps of ordinary mixed-precision training: the loss falls as with stock."""
    need_gpu()

    def train(on):
        torch.manual_seed(5)
        model = network().to(memory_format=torch.channels_last)
        optimiser, scaler = torch.optim.SGD(model.parameters(), lr=0.05), torch.amp.GradScaler(DEVICE)
        x, target = floats(4, 3, 16, 16, grad=False), floats(4, 4, 16, 16, grad=False)
        losses = []
        with retrograd.torch.enable(ops="all" if on else "conv_tbc_backward", devices=DEVICE):
            for _ in range(10):
                optimiser.zero_grad()
                with torch.autocast(DEVICE, torch.float16):
                    loss = functional.mse_loss(model(x), target)
                scaler.scale(loss).backward()
                scaler.step(optimiser)
                scaler.update()
                losses.append(loss.item())
        return losses

    stock, ours = train(False), train(True)
    assert taken("convolution_backward") == 40
    assert ours[-1] < ours[0]
    assert all(abs(a - b) <= 0.02 * abs(a) for a, b in zip(stock, ours, strict=True)), (stock, ours)


def test_fall_backs_are_counted():
    function = functional.conv2d
    with enable():
        gradients(function, [floats(1, 2, 6, 6, dtype=torch.float64), floats(2, 2, 3, 3, dtype=torch.float64)],
                  torch.ones(1, 2, 4, 4, device=DEVICE, dtype=torch.float64))
        empty = floats(0, 2, 6, 6)
        gradients(function, [empty, floats(2, 2, 3, 3)], torch.ones(0, 2, 4, 4, device=DEVICE))
        for channels, stride in ((5, 1), (3, 0)):  # the weight's channels do not fit; no stride
            bad = [floats(*shape, grad=False) for shape in ((1, 4, 6, 6), (1, 3, 8, 8), (4, channels, 3, 3))]
            try:
                torch.ops.aten.convolution_backward.default(*bad, [4], [stride] * 2, [0, 0], [1, 1], False, [0, 0], 1, [True] * 3)
            except RuntimeError as error:
                assert "retrograd" not in str(error)
            else:
                raise AssertionError("a call that is no convolution passed")
    counts = retrograd.torch.stats()["convolution_backward"]
    assert taken() == 0
    assert counts["by_device"][DEVICE]["fell_back"] == {
        "element type is not float32, float16 or bfloat16": 1, "a tensor without elements": 1, "refused by the planner": 2}, counts


def test_cpu_tensors_are_left_alone():
    need_gpu()
    with enable():
        functional.conv2d(torch.randn(1, 2, 6, 6), torch.randn(2, 2, 3, 3, requires_grad=True)).sum().backward()
        assert taken() == 0 and fell_back() == 0
    with retrograd.torch.enable(policy="always") as override:
        assert override.devices == ("cpu", "cuda")
        functional.conv2d(torch.randn(1, 2, 6, 6), torch.randn(2, 2, 3, 3, requires_grad=True)).sum().backward()
        functional.conv2d(floats(1, 2, 6, 6), floats(2, 2, 3, 3)).sum().backward()
    by_device = retrograd.torch.stats()["convolution_backward"]["by_device"]
    assert by_device == {"cpu": {"taken": 1, "fell_back": {}}, "cuda": {"taken": 1, "fell_back": {}}}


def test_policies():
    dense = [floats(4, 64, 28, 28), floats(64, 64, 3, 3)]
    depthwise = [floats(4, 64, 28, 28), floats(64, 1, 3, 3)]

    def run():
        functional.conv2d(*dense).sum().backward()
        functional.conv2d(*depthwise, groups=64).sum().backward()

    with enable(policy="depthwise"):
        run()
    assert taken() == 1
    assert retrograd.torch.stats()["convolution_backward"]["fell_back"] == {"policy depthwise: not depthwise": 1}
    with enable(policy="auto"):
        run()
    assert taken() == 3


def test_same_bits():
    """In every run, and while other work is on the GPU."""
    operands = [floats(8, 64, 28, 28), floats(64, 64, 3, 3), floats(64)]
    grad_output = floats(8, 64, 28, 28, grad=False)
    with enable():
        first = None
        for _ in range(20):
            results = gradients(lambda *tensors: functional.conv2d(*tensors, padding=1), operands, grad_output)
            first = first or results
            assert all(torch.equal(mine, theirs) for mine, theirs in zip(results, first, strict=True))
            if DEVICE == "cuda":
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    torch.randn(512, 512, device=DEVICE) @ torch.randn(512, 512, device=DEVICE)
    assert taken() == 20


def test_double_backward():
    x, w = floats(1, 2, 6, 6), floats(3, 2, 3, 3)
    with tf32(False):
        def second(x, w):
            (first,) = torch.autograd.grad(functional.conv2d(x, w, padding=1).square().sum(), [w], create_graph=True)
            return torch.autograd.grad(first.square().sum(), [x, w])

        exact = second(*(value.detach().double().requires_grad_() for value in (x, w)))
        with enable():
            ours = second(x, w)
        assert taken() >= 1
    for mine, theirs in zip(ours, exact, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-4 * theirs.abs().max().item())


def test_graph_of_conv_tbc_is_recorded():
    x, w, b = floats(5, 2, 3), floats(3, 3, 4), floats(4)
    with enable():
        (first,) = torch.autograd.grad(torch.conv_tbc(x, w, b, 1).square().sum(), [w], create_graph=True)
        first.square().sum().backward()
    assert x.grad is not None
    assert retrograd.torch.stats()["conv_tbc_backward"]["fell_back"] == {"a graph of the gradient is recorded": 1}


def test_copy_on_write_stays():
    """Operands are read, so a lazy clone stays one."""
    if not hasattr(torch._C, "_is_cow_tensor"):
        skip("this PyTorch cannot say whether a tensor is copied on write")
    operands = [torch._lazy_clone(floats(*shape, grad=False)) for shape in ((2, 4, 6, 6), (2, 3, 8, 8), (4, 3, 3, 3))]
    with enable():
        torch.ops.aten.convolution_backward.default(*operands, [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3)
        assert taken() == 1
    assert all(torch._C._is_cow_tensor(x) for x in operands)


def test_several_threads_and_streams():
    need_gpu()
    problems = [[floats(2, 16, 20, 20 + i, grad=False), floats(16, 16 if i % 2 else 1, 3, 3, grad=False)] for i in range(4)]
    failures = []

    def run(x, weight):
        leaf = weight.clone().requires_grad_()
        functional.conv2d(x, leaf, groups=16 // weight.shape[1]).square().sum().backward()
        return leaf.grad

    with tf32(False), enable():
        expected = [run(*problem) for problem in problems]
        torch.cuda.synchronize()

        def work(seed):
            try:
                with torch.cuda.stream(torch.cuda.Stream()):
                    for step in range(20):
                        number = (seed + step) % len(problems)
                        torch.testing.assert_close(run(*problems[number]), expected[number], rtol=1e-3, atol=1e-2)
            except Exception as error:  # a thread's exception would be lost
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        assert taken() == 4 + 80


def test_second_gpu():
    """The device is the tensors', not the current one."""
    need_gpu()
    if torch.cuda.device_count() < 2:
        skip("one GPU only")
    x, w = (torch.randn(shape, device="cuda:1", requires_grad=True) for shape in ((2, 8, 9, 9), (8, 8, 3, 3)))
    with tf32(False), enable():
        ours = gradients(functional.conv2d, [x, w], torch.ones(2, 8, 7, 7, device="cuda:1"))
        assert torch.cuda.current_device() == 0 and taken() == 1
    judge(functional.conv2d, [x, w], torch.ones(2, 8, 7, 7, device="cuda:1"), ours)


def test_memory_is_given_back():
    """Workspaces and results are PyTorch's: after many calls no more is allocated than after one."""
    need_gpu()
    operands = [floats(8, 64, 28, 28), floats(64, 64, 3, 3)]
    with enable():
        allocated = []
        for _ in range(30):
            functional.conv2d(*operands, padding=1).sum().backward()
            for x in operands:
                x.grad = None
            torch.cuda.synchronize()
            allocated.append(torch.cuda.memory_allocated())
    assert allocated[-1] <= allocated[1]


def test_enabling_within_a_capture_is_refused():
    need_gpu()
    x = floats(4, grad=False)
    said = None
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x.add_(1)
        try:
            enable()
        except RuntimeError as error:
            said = str(error)
    assert said is not None and "a CUDA graph is being captured" in said


@each(backend=["aot_eager", "inductor"], channels_last=[False, True])
def test_compiled(backend, channels_last):
    need_gpu()
    if not WITH_COMPILE:
        skip("takes half a minute: --compile")
    layout = torch.channels_last if channels_last else torch.contiguous_format
    torch._dynamo.reset()
    model, x = network().to(memory_format=layout), floats(2, 3, 16, 16, layout=layout)
    exact = network().double()
    exact.load_state_dict(model.state_dict())
    exact(x.double()).square().mean().backward()
    with tf32(False), enable():
        torch.compile(model, backend=backend)(x).square().mean().backward()
        assert taken("convolution_backward") == 4
    for mine, theirs in zip(model.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.double(), theirs.grad, rtol=1e-4, atol=1e-6)
    torch._dynamo.reset()


def need_extension_module():
    if not hasattr(retrograd, "_core"):
        skip("the extension module retrograd._core is not built for this Python")


@each(dtype=TYPES, channels_last=[False, True])
def test_dlpack_of_torch(dtype, channels_last):
    """retrograd.conv_backward on tensors of PyTorch: on its current stream, results by its allocator."""
    need_extension_module()
    layout = torch.channels_last if channels_last else torch.contiguous_format
    x, w = floats(2, 16, 12, 12, dtype=dtype, layout=layout), floats(16, 16, 3, 3, dtype=dtype, layout=layout)
    bias = floats(16, dtype=dtype)

    def function(*tensors):
        return functional.conv2d(*tensors, padding=1)

    grad_output = torch.randn_like(function(x, w, bias))
    arrays = [value.detach() for value in (grad_output, x, w)]
    ours = retrograd.conv_backward(*arrays, padding=1)
    assert all(value.device.type == DEVICE and value.dtype == dtype for value in ours)
    judge(function, [x, w, bias], grad_output, ours)
    assert ours.grad_input.stride() == x.stride()
    given = [torch.full_like(value, 7) for value in (x.detach(), w.detach())]
    retrograd.conv_backward(*arrays, padding=1, wanted=(True, True, False), out=(*given, None))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(given, ours))


def test_dlpack_on_another_stream():
    need_gpu()
    need_extension_module()
    source = [floats(4, 32, 26, 26, grad=False), floats(4, 32, 28, 28, grad=False), floats(32, 32, 3, 3, grad=False)]
    expected = retrograd.conv_backward(*source)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        late = [torch.zeros_like(x) for x in source]
        torch.cuda._sleep(20_000_000)
        for x, value in zip(late, source):
            x.copy_(value)
        ours = retrograd.conv_backward(*late)
    stream.synchronize()
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(ours, expected))


def test_dlpack_pool_and_tbc():
    need_extension_module()
    x = floats(2, 3, 8, 8, grad=False)
    pooled = retrograd.avg_pool_backward(torch.ones(2, 3, 4, 4, device=DEVICE), x, 2)
    assert torch.equal(pooled, torch.full_like(x, 0.25))
    dy, t, w = floats(9, 2, 4, grad=False), floats(9, 2, 3, grad=False), floats(3, 3, 4, grad=False)
    ours = retrograd.conv_tbc_backward(dy, t, w, pad=1)
    leaves = [t.double().requires_grad_(), w.double().requires_grad_(), torch.zeros(4, device=DEVICE).double().requires_grad_()]
    exact = torch.autograd.grad(torch.conv_tbc(*leaves, 1), leaves, dy.double())
    for mine, theirs in zip(ours, exact):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-4)


@each(dtype=TYPES, channels_last=[False, True])
def test_dlpack_forward(dtype, channels_last):
    """The forward functions on tensors of PyTorch, with a bias, against doubles."""
    need_extension_module()
    layout = torch.channels_last if channels_last else torch.contiguous_format
    x, w = floats(2, 16, 12, 12, dtype=dtype, layout=layout, grad=False), floats(24, 16, 3, 3, dtype=dtype, grad=False)
    bias = floats(24, dtype=dtype, grad=False)
    accuracy = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
    ours = retrograd.conv(x, w, bias, stride=2, padding=1)
    assert ours.dtype == dtype and ours.device.type == DEVICE and ours.is_contiguous(memory_format=layout)
    exact = functional.conv2d(x.double(), w.double(), bias.double(), stride=2, padding=1)
    torch.testing.assert_close(ours.double(), exact, rtol=accuracy, atol=8 * accuracy)
    pooled = retrograd.avg_pool(x, 3, stride=2, padding=1)
    torch.testing.assert_close(pooled.double(), functional.avg_pool2d(x.double(), 3, 2, 1), rtol=accuracy, atol=accuracy)
    steps = retrograd.conv_tbc(x[0, :, :, 0].reshape(16, 1, 12), w[:3, :12, 0, 0].reshape(3, 12, 1), bias[:1], pad=1)
    exact = torch.conv_tbc(x[0, :, :, 0].reshape(16, 1, 12).double(), w[:3, :12, 0, 0].reshape(3, 12, 1).double(),
                           bias[:1].double(), 1)
    torch.testing.assert_close(steps.double(), exact, rtol=accuracy, atol=8 * accuracy)


def test_dlpack_of_cupy():
    need_gpu()
    need_extension_module()
    if importlib.util.find_spec("cupy") is None:
        skip("there is no cupy")
    import cupy

    source = [floats(2, 8, 6, 6, grad=False), floats(2, 4, 8, 8, grad=False), floats(8, 4, 3, 3, grad=False)]
    torch.cuda.synchronize()
    expected = retrograd.conv_backward(*source)
    ours = retrograd.conv_backward(*(cupy.from_dlpack(x) for x in source))
    cupy.cuda.Device().synchronize()
    for mine, theirs in zip(ours, expected):
        assert isinstance(mine, cupy.ndarray)
        assert torch.equal(torch.from_dlpack(mine), theirs)


def test_tensors_of_two_devices():
    """Last: should PyTorch not look at it, the GPU is lost for what follows."""
    need_gpu()
    with enable():
        try:
            torch.ops.aten.convolution_backward.default(
                floats(1, 4, 6, 6, grad=False), floats(1, 3, 8, 8, grad=False), torch.ones(4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1],
                False, [0, 0], 1, [True] * 3)
        except RuntimeError:
            pass
        else:
            raise AssertionError("a weight in main memory passed")
    counts = retrograd.torch.stats()["convolution_backward"]["by_device"]
    assert counts == {"cuda": {"taken": 0, "fell_back": {"not strided tensors of one device": 1}}}


def run_alone(words):
    """Every test in this file, without pytest."""
    if DEVICE == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch finds no NVIDIA GPU")
        return 0
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU tensors"
    print(f"retrograd {retrograd.__version__}, torch {torch.__version__}, {name}", flush=True)
    passed, failed, skipped, begin = 0, 0, {}, time.monotonic()
    for test, function in [(n, f) for n, f in globals().items() if n.startswith("test_") and callable(f)]:
        for case in getattr(function, "cases", [{}]):
            title = " ".join([test, *(f"{key}={value}" for key, value in case.items())])
            if not all(word in title for word in words):
                continue
            retrograd.torch.disable()
            retrograd.torch.reset_stats()
            torch.manual_seed(1)
            try:
                function(**case)
                passed += 1
            except Skipped as reason:
                skipped.setdefault((test, str(reason)), []).append(title)
            except Exception as error:
                failed += 1
                last = traceback.extract_tb(error.__traceback__)[-1]
                print(f"FAILED {title}: {type(error).__name__}: {str(error)[:600]} ({os.path.basename(last.filename)}:{last.lineno})",
                      flush=True)
                if "CUDA error" in str(error):  # the context is lost: nothing after it means anything
                    print("stopped: the GPU is in a state that only a new process leaves")
                    return 1
    for (test, reason), titles in skipped.items():
        print(f"skipped {test} ({len(titles)} cases): {reason}")
    print(f"{passed} passed, {failed} failed, {sum(map(len, skipped.values()))} skipped in {time.monotonic() - begin:.0f} s")
    return 1 if failed or not passed else 0


if ALONE:
    arguments = sys.argv[1:]
    if "--device" in arguments:
        place = arguments.index("--device")
        arguments = arguments[:place] + arguments[place + 2 :]
    sys.exit(run_alone([word for word in arguments if word != "--compile"]))
