# SPDX-License-Identifier: Apache-2.0
"""Tests of retrograd.torch. scripts/torch-test runs them in an environment that has PyTorch."""

import importlib.util
import os
import signal
import subprocess
import sys

import pytest

if os.environ.get("RETROGRAD_TORCH_TESTS") != "1":  # scripts/torch-test: a PyTorch that is missing is a failure there
    pytest.importorskip("torch")



def stock_is_killed():
    """Some virtual machines announce AMX and refuse its instructions: PyTorch by itself is killed there."""
    code = ("import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(x, x); "
            "torch.nn.functional.conv_transpose2d(x.view(2, 8, 16, 16), torch.ones(8, 4, 2, 2, dtype=x.dtype), stride=2)")
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == -signal.SIGILL


ONEDNN_LIMITED = "ONEDNN_MAX_CPU_ISA" not in os.environ and importlib.util.find_spec("torch") is not None and stock_is_killed()
if ONEDNN_LIMITED:  # read at its first use, by processes that tests start as well
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"

import torch

import retrograd.torch


def pytest_report_header():
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


def taken(operator=None):
    """How many calls were ours, of one operator or of all."""
    stats = retrograd.torch.stats()
    names = [operator] if operator else [name for name, value in stats.items() if isinstance(value, dict)]
    return sum(stats[name]["taken"] for name in names)


def fell_back():
    stats = retrograd.torch.stats()
    return sum(sum(value["fell_back"].values()) for value in stats.values() if isinstance(value, dict))
