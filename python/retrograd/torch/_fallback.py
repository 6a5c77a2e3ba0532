# SPDX-License-Identifier: Apache-2.0
"""Operators that the C++ part calls through the dispatcher: the kernels that were there before, and how results lie.

PyTorch's stable ABI cannot call a kernel, only an operator, and `aten::…` would call ours again. So the kernels that
`enable` found are operators of our own: retrograd::original_….
"""

import warnings

from ._pytorch import torch

# Operator, and what the dispatch key at which it is overridden begins with; the device ends it. The order is that of the
# enumeration Op in csrc/counters.h.
OPERATORS = {
    "convolution_backward": "",
    "conv_tbc_backward": "Autograd",
    "avg_pool2d_backward": "",
    "avg_pool3d_backward": "",
}
# Kinds of devices and their dispatch keys, in the order of retrogradDeviceType_t.
DEVICES = {"cpu": "CPU", "cuda": "CUDA"}

_originals = {}  # (operator, device): the kernel that was there before
_warned = False
_library = None  # keeps the operators alive; they stay for the rest of the process


def remember_originals(operators, devices):
    """Before ours are installed."""
    for name in operators:
        for device in devices:
            _originals[name, device] = torch.library.get_kernel("aten::" + name, OPERATORS[name] + DEVICES[device])


def take_the_warning():
    """PyTorch 2.10 and 2.11 warn, once in a process, when a kernel is overridden, and print it where C++ does the
    overriding. So Python does it first, for a moment, with a kernel that calls the original."""
    global _warned
    if _warned:
        return
    _warned = True
    name = "avg_pool2d_backward"
    original = torch.library.get_kernel("aten::" + name, "CPU")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*Overriding a previously registered kernel")
        library = torch._C._dispatch_library("IMPL", "aten", "CPU", "")
        library.impl(name, "CPU", lambda keyset, *arguments: original.call_boxed(keyset, *arguments), True)
        del library


def _device_of(arguments):
    """Where the dispatcher sends a call with these arguments: one tensor on a GPU makes it a call there."""
    return "cuda" if any(isinstance(x, torch.Tensor) and x.is_cuda for x in arguments) else "cpu"


def _original(name, note_error):
    def call(keyset, *arguments):
        try:
            return _originals[name, _device_of(arguments)].call_boxed(keyset, *arguments)
        except Exception as error:
            note_error(str(error).encode())  # it cannot pass through C as it is
            raise

    return call


def _convolution_format(input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups):
    """1 where PyTorch's own kernel would give channels-last gradients, otherwise 0: what FakeTensor answers as well."""
    backend = torch._C._select_conv_backend(
        input, weight, bias=None, stride=stride, padding=padding, dilation=dilation, transposed=transposed,
        output_padding=output_padding, groups=groups, bias_sizes=bias_sizes)
    if weight.dim() == 3:  # computed as 2-D
        input, weight = torch.empty_like(input, memory_format=torch.contiguous_format).unsqueeze(2), weight.unsqueeze(2)
    memory_format = torch._C._conv_determine_backend_memory_format(input, weight, backend)
    return int(memory_format in (torch.channels_last, torch.channels_last_3d))


def _allows_tf32(products):
    """Of stock convolutions (0) and matrix products (1) of float32: csrc/gpu.h. `allow_tf32` and `fp32_precision` are two
    views of this setting."""
    return torch._C._get_fp32_precision_getter("cuda", ("conv", "matmul")[products]) == "tf32"


def define_operators(note_error):
    global _library
    if _library is not None:
        return
    for name in ("_select_conv_backend", "_conv_determine_backend_memory_format", "_get_fp32_precision_getter"):
        if not hasattr(torch._C, name):
            raise RuntimeError(f"retrograd.torch: this PyTorch {torch.__version__} has no torch._C.{name}")
    library = torch.library.Library("retrograd", "FRAGMENT")
    for name, prefix in OPERATORS.items():
        schema = str(getattr(torch.ops.aten, name).default._schema).removeprefix("aten::" + name)
        library.define(f"original_{name}{schema}")
        # The original of an operator that is overridden above autograd records its own graph.
        for key in ("CompositeImplicitAutograd",) if prefix else DEVICES.values():
            library.impl(f"original_{name}", _original(name, note_error), key, with_keyset=True)
    library.define("convolution_format(Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, "
                   "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> int")
    for key in DEVICES.values():
        library.impl("convolution_format", _convolution_format, key)
    library.define("allows_tf32(int products) -> bool")
    library.impl("allows_tf32", _allows_tf32, "CompositeExplicitAutograd")
    _library = library
