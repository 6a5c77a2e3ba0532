# SPDX-License-Identifier: Apache-2.0
"""Forked children, and data-parallel training over two processes."""

import os
import socket
import subprocess
import sys
import time

import torch
from counting import taken
from training import Network, digest, train

import retrograd.torch


def wait_for(child, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "no answer"


def test_fork(always):
    """libgomp's threads do not survive a fork, so PyTorch itself hangs in a child with more than one thread. With one, as in
    the workers of a DataLoader, both work."""
    expected = digest(train(steps=3))
    before = taken()
    child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)
            same = digest(train(steps=3)) == expected
            os._exit(0 if same and taken() == 2 * before else 3)
        except BaseException:
            os._exit(4)
    assert wait_for(child, 120) == 0
    assert digest(train(steps=3)) == expected, "the parent goes on"
    assert taken() == 2 * before


def test_fork_before_anything_ran_keeps_threads():
    code = """
import os, sys, torch, retrograd.torch
torch.set_num_threads(2)
from training import digest, train
child = os.fork()
if child == 0:
    retrograd.torch.enable(policy="always")
    one = digest(train(steps=2))
    torch.set_num_threads(1)
    os._exit(0 if one == digest(train(steps=2)) else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False, timeout=120).returncode == 0


RANK = """
import os, sys, torch, torch.distributed as dist
import retrograd.torch
from training import Network, digest
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + sys.argv[2], rank=int(sys.argv[1]), world_size=2)
retrograd.torch.enable(policy="always")
torch.manual_seed(3)
model = torch.nn.parallel.DistributedDataParallel(Network())
optimiser = torch.optim.SGD(model.parameters(), lr=0.05, foreach=False)
torch.manual_seed(4)
x, target = torch.randn(4, 3, 24, 24), torch.randn(4, 4, 12, 12)
mine = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2)
for _ in range(5):
    optimiser.zero_grad()
    output = model(x[mine])
    output.backward((output - target[mine]).detach() / output.numel())
    optimiser.step()
stats = retrograd.torch.stats()["convolution_backward"]
assert (stats["taken"], stats["fell_back"]) == (25, {}), stats
torch.save([p.detach() for p in model.module.parameters()], sys.argv[3])
print(digest(model.module), flush=True)
dist.destroy_process_group()
os._exit(0)  # as in examples/python/train_distributed.py
"""


def test_two_processes_with_gloo(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), port, str(tmp_path / str(rank))], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]
    try:
        answers = [rank.communicate(timeout=240) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], answers
    digests = {output.splitlines()[-1] for output, _ in answers}  # gloo of some versions prints before it
    assert len(digests) == 1, "the ranks have different weights"

    # One process with the whole batch, in doubles and with PyTorch's own kernels.
    torch.manual_seed(3)
    model = Network().double()
    torch.manual_seed(4)
    x, target = torch.randn(4, 3, 24, 24).double(), torch.randn(4, 4, 12, 12).double()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, foreach=False)
    for _ in range(5):
        optimiser.zero_grad()
        output = model(x)
        output.backward((output - target).detach() / output.numel())
        optimiser.step()
    for ours, exact in zip(torch.load(tmp_path / "0"), model.parameters(), strict=True):
        torch.testing.assert_close(ours.double(), exact.detach(), rtol=1e-4, atol=1e-5)
