# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python, as a user starts them."""

import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest
import torch

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples/python"


def run(*arguments):
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    return subprocess.run([sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def train(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import train as module

    yield module
    for name in ("train", "network"):
        sys.modules.pop(name, None)


def test_training_with_and_without(tmp_path):
    result = run(EXAMPLES / "train.py", "--steps", 12, "--policy", "always", "--svg", tmp_path / "losses.svg")
    assert result.returncode == 0, result.stderr
    assert "convolution_backward: 132 taken, 0 left to PyTorch" in result.stdout  # eleven convolutions
    assert "avg_pool2d_backward: 24 taken, 0 left to PyTorch" in result.stdout
    first = re.findall(r"loss ([\d.]+) ->", result.stdout)
    assert len(first) == 2 and first[0] == first[1], "the same weights and pictures"
    lines = xml.etree.ElementTree.parse(tmp_path / "losses.svg").findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points").split()) for line in lines] == [12, 12]


def test_wrong_gradients_are_a_failure(train, monkeypatch, capsys):
    honest = train.Training.run

    def dishonest(self, batches):
        if self.name == "with Retrograd":
            for parameter in self.model.parameters():
                parameter.register_hook(lambda gradient: -gradient)
        honest(self, batches)

    monkeypatch.setattr(train.Training, "run", dishonest)
    monkeypatch.setattr(sys, "argv", ["train.py", "--steps", "10"])
    assert train.main() == 1
    assert "the losses part" in capsys.readouterr().err


def test_bad_arguments_are_a_sentence():
    result = run(EXAMPLES / "train.py", "--steps", 0)
    assert result.returncode == 2 and "--steps is 0, expected at least 1" in result.stderr
    if not torch.cuda.is_available():
        result = run(EXAMPLES / "train.py", "--device", "cuda")
        assert result.returncode == 2 and "this PyTorch finds no GPU" in result.stderr


def torchrun(ranks, *arguments):
    result = run("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, EXAMPLES / "train_distributed.py", *arguments)
    return result, dict(re.findall(r"^(loss|weights) (.*)$", result.stdout, re.M))


def test_two_ranks_have_the_same_weights_whatever_the_buckets():
    """Two numbers have one sum: neither the size of the buckets nor the number of threads changes a bit."""
    found = []
    for threads, bucket in (("1", 25), ("2", 0.02)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OMP_NUM_THREADS", threads)
            result, said = torchrun(2, "--steps", 5, "--bucket-mb", bucket)
        assert result.returncode == 0, result.stderr
        assert said["weights"].endswith("the same on every rank")
        found.append(said)
    assert found[0] == found[1]
    # One rank sees the same pictures: the same losses but for rounding.
    result, alone = torchrun(1, "--steps", 5)
    assert result.returncode == 0, result.stderr
    ours, one = (list(map(float, said["loss"].split(" -> "))) for said in (found[0], alone))
    assert ours == pytest.approx(one, rel=1e-4)
    assert alone["weights"] != found[0]["weights"], "the digest must tell weights apart that differ in their last bits"


def test_ranks_that_do_not_divide_the_batch_are_a_sentence():
    result, _ = torchrun(3)
    assert result.returncode != 0 and "3 ranks, expected a divisor of 32" in result.stderr
    result = run(EXAMPLES / "train_distributed.py")
    assert result.returncode == 2 and "start it with torchrun" in result.stderr
