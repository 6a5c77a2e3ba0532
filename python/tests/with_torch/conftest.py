# SPDX-License-Identifier: Apache-2.0
"""Tests of retrograd.torch. scripts/torch-test runs them in an environment that has PyTorch."""

import importlib.util
import os
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # what the tests share

FOUND = importlib.util.find_spec("torch")
HAVE_TORCH = FOUND is not None and FOUND.origin is not None  # a folder of that name, such as this one, is no package
# scripts/torch-test sets the variable: a PyTorch that is missing is a failure there.
if not HAVE_TORCH and os.environ.get("RETROGRAD_TORCH_TESTS") != "1":
    collect_ignore_glob = ["test_*.py"]


def stock_is_killed():
    """Some virtual machines announce AMX and refuse its instructions: PyTorch by itself is killed there."""
    code = ("import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(x, x); "
            "torch.nn.functional.conv_transpose2d(x.view(2, 8, 16, 16), torch.ones(8, 4, 2, 2, dtype=x.dtype), stride=2)")
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == -signal.SIGILL


ONEDNN_LIMITED = HAVE_TORCH and "ONEDNN_MAX_CPU_ISA" not in os.environ and stock_is_killed()
if ONEDNN_LIMITED:  # read at its first use, by processes that tests start as well
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"

if HAVE_TORCH:
    import torch

    import retrograd.torch


def pytest_report_header():
    if not HAVE_TORCH:
        return "torch is not installed: no tests of retrograd.torch"
    limited = ", oneDNN without AMX, which kills this PyTorch here" if ONEDNN_LIMITED else ""
    return f"torch {torch.__version__}, {torch.get_num_threads()} threads{limited}"


@pytest.fixture(autouse=True)
def off_before_and_after():
    retrograd.torch.disable()
    retrograd.torch.reset_stats()
    threads = torch.get_num_threads()
    torch.manual_seed(1)
    yield
    torch.set_num_threads(threads)
    retrograd.torch.disable()


@pytest.fixture
def always(off_before_and_after):
    with retrograd.torch.enable(policy="always") as override:
        yield override
