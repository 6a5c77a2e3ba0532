# SPDX-License-Identifier: Apache-2.0
"""Operators that the C++ part calls through the dispatcher: the kernels that were there before, and how results lie.

PyTorch's stable ABI cannot call a kernel, only an operator, and `aten::…` would call ours again. So the kernels that
`enable` found are operators of our own: retrograd::original_….
"""

import warnings

from ._pytorch import torch

# Operator, and the dispatch key at which it is overridden. The order is that of the enumeration Op in csrc/counters.h.
OPERATORS = {
    "convolution_backward": "CPU",
    "conv_tbc_backward": "AutogradCPU",
    "avg_pool2d_backward": "CPU",
    "avg_pool3d_backward": "CPU",
}

_originals = {}  # operator: the kernel that was there before
_warned = False
_library = None  # keeps the operators alive; they stay for the rest of the process


def remember_originals(operators):
    """Before ours are installed."""
    for name in operators:
        _originals[name] = torch.library.get_kernel("aten::" + name, OPERATORS[name])


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


def _original(name, note_error):
    def call(keyset, *arguments):
        try:
            return _originals[name].call_boxed(keyset, *arguments)
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


def define_operators(note_error):
    global _library
    if _library is not None:
        return
    for name in ("_select_conv_backend", "_conv_determine_backend_memory_format"):
        if not hasattr(torch._C, name):
            raise RuntimeError(f"retrograd.torch: this PyTorch {torch.__version__} has no torch._C.{name}")
    library = torch.library.Library("retrograd", "FRAGMENT")
    for name, key in OPERATORS.items():
        schema = str(getattr(torch.ops.aten, name).default._schema).removeprefix("aten::" + name)
        library.define(f"original_{name}{schema}")
        # The original of an operator that is overridden above autograd records its own graph.
        library.impl(f"original_{name}", _original(name, note_error),
                     "CompositeImplicitAutograd" if key.startswith("Autograd") else key, with_keyset=True)
    library.define("convolution_format(Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, "
                   "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> int")
    library.impl("convolution_format", _convolution_format, "CPU")
    _library = library
