# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python, as a user starts them."""

import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

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
