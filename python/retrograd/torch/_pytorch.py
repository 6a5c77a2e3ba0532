# SPDX-License-Identifier: Apache-2.0
"""PyTorch as it is here, or a sentence that says what is wrong with it."""

import os
import re

OLDEST = (2, 10)

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise ImportError(f"retrograd.torch needs PyTorch, whose import fails: {error}") from error
    raise ImportError("retrograd.torch needs PyTorch 2.10 or later, which is not installed: pip install torch") from error
except (ImportError, OSError) as error:
    raise ImportError(f"retrograd.torch needs PyTorch, whose libraries cannot be loaded: {error}") from error


def version_of(text):
    """(2, 15) of "2.15.0+cu132"; None for what is no version."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def check_version(text=None):
    text = torch.__version__ if text is None else text
    version = version_of(text)
    if version is None:
        raise RuntimeError(f"retrograd.torch needs PyTorch 2.10 or later; torch.__version__ is {text!r}, which is no version")
    if version < OLDEST:
        raise RuntimeError(f"retrograd.torch needs PyTorch 2.10 or later, whose stable ABI it is built on; this is {text}")


def folders():
    """The folders of PyTorch's headers and libraries."""
    root = os.path.dirname(os.path.abspath(torch.__file__))
    include, lib = os.path.join(root, "include"), os.path.join(root, "lib")
    if not os.path.exists(os.path.join(lib, "libtorch_cpu.so")):
        raise RuntimeError(f"retrograd.torch needs libtorch_cpu.so, which is not in {lib}")
    return include, lib
