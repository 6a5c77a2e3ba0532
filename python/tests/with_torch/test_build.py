# SPDX-License-Identifier: Apache-2.0
"""The C++ part: what is said where it cannot be built or loaded."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

from retrograd.torch import _build as build
from retrograd.torch import _pytorch


def run(code, **variables):
    """A fresh interpreter, with the package of this one."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path), **variables)
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=300)


ENABLE = "import retrograd.torch; retrograd.torch.enable()"


@pytest.mark.skipif(os.path.exists(os.path.join(build.PACKAGE, build.NAME)), reason="the package holds a built one")
def test_no_compiler(tmp_path):
    result = run(ENABLE, PATH=str(tmp_path), RETROGRAD_CACHE_DIR=str(tmp_path))
    assert result.returncode == 1
    assert "BuildError: retrograd.torch needs a C++17 compiler once" in result.stderr
    result = run(ENABLE, CXX="no-such-compiler", RETROGRAD_CACHE_DIR=str(tmp_path))
    assert "there is no compiler 'no-such-compiler', which the variable CXX names" in result.stderr


@pytest.mark.skipif(os.path.exists(os.path.join(build.PACKAGE, build.NAME)), reason="the package holds a built one")
def test_compiler_fails(tmp_path):
    result = run(ENABLE, CXX="false", RETROGRAD_CACHE_DIR=str(tmp_path))
    assert "BuildError: retrograd.torch: building libretrograd_torch.so failed" in result.stderr
    assert list(tmp_path.glob("*/*")) == [], "nothing is left behind"


@pytest.mark.skipif(os.path.exists(os.path.join(build.PACKAGE, build.NAME)), reason="the package holds a built one")
def test_cache_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run(ENABLE, RETROGRAD_CACHE_DIR=str(blocked))
    assert "cannot be written" in result.stderr and "RETROGRAD_CACHE_DIR" in result.stderr


def test_built_into_a_folder_and_loaded(tmp_path):
    result = subprocess.run([sys.executable, "-m", "retrograd.torch.build", "--into", str(tmp_path)], capture_output=True,
                            text=True, check=False, timeout=300,
                            env=dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path)))
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.strip() == str(tmp_path / build.NAME)
    undefined = subprocess.run(["ldd", "-r", str(tmp_path / build.NAME)], capture_output=True, text=True, check=False,
                               env=dict(os.environ, LD_LIBRARY_PATH=_pytorch.folders()[1])).stdout
    assert "undefined symbol: retrograd" not in undefined
    exported = subprocess.run(["nm", "-D", "--defined-only", str(tmp_path / build.NAME)], capture_output=True, text=True,
                              check=True).stdout
    ours = {line.split()[-1] for line in exported.splitlines() if line.split()[-1].startswith("retrograd_torch_")}
    assert ours == {"retrograd_torch_" + name for name in build.FUNCTIONS}


def test_a_file_that_is_no_library(tmp_path, monkeypatch):
    (tmp_path / build.NAME).write_text("text")
    monkeypatch.setattr(build, "PACKAGE", str(tmp_path))
    with pytest.raises(build.BuildError, match="does not fit this PyTorch"):
        build.load(torch.__version__, _pytorch.folders())


@pytest.mark.parametrize("version", ["2.9.1", "1.13.0+cpu", "2.10a0"[:3]])
def test_too_old(version):
    with pytest.raises(RuntimeError, match="needs PyTorch 2.10 or later"):
        _pytorch.check_version(version)


@pytest.mark.parametrize("version", ["2.10.0", "2.15.0+cu132", "3.0.0a0"])
def test_new_enough(version):
    _pytorch.check_version(version)


def test_no_version():
    with pytest.raises(RuntimeError, match="which is no version"):
        _pytorch.check_version("git-1234")


def test_enable_says_that_it_is_too_old():
    result = run("import torch; torch.__version__ = '2.9.0'\n" + ENABLE)
    assert "RuntimeError: retrograd.torch needs PyTorch 2.10 or later, whose stable ABI it is built on; this is 2.9.0" in result.stderr


LIBRARY_ONLY = """
import sys
sys.path.insert(0, {checkout!r})
import retrograd
print(retrograd.__version__)
try:
    retrograd.conv_backward
except AttributeError as error:
    print(error)
import retrograd.torch
print(retrograd.torch.enable(devices="cpu", policy="always").devices)
"""


def test_library_and_compiler_alone(tmp_path):
    """A checkout without the extension module: RETROGRAD_LIBRARY is enough for retrograd.torch."""
    package = tmp_path / "checkout" / "retrograd"
    shutil.copytree(os.path.dirname(build.PACKAGE), package, ignore=shutil.ignore_patterns("_core*.so", "lib*.so*", "__pycache__"))
    shutil.copytree(build.headers(), package / "include", dirs_exist_ok=True)
    code = LIBRARY_ONLY.format(checkout=str(package.parent))
    result = run(code, RETROGRAD_LIBRARY=build.library())
    assert result.returncode == 0, result.stderr
    version, sentence, devices = result.stdout.splitlines()
    assert version.count(".") == 2
    assert "retrograd.conv_backward needs the extension module" in sentence
    assert devices == "('cpu',)"
    result = run(code, RETROGRAD_LIBRARY=str(tmp_path / "none.so"))
    assert "ImportError: RETROGRAD_LIBRARY is" in result.stderr and "none.so" in result.stderr


def test_no_torch():
    result = run("import sys; sys.modules['torch'] = None\nimport retrograd.torch")
    assert "ImportError: retrograd.torch needs PyTorch" in result.stderr


def test_no_libtorch(monkeypatch, tmp_path):
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(RuntimeError, match="needs libtorch_cpu.so, which is not in"):
        _pytorch.folders()


def test_a_torch_that_does_not_load(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch_cpu.so: cannot open shared object file')")
    result = run(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport retrograd.torch")
    assert "ImportError: retrograd.torch needs PyTorch, whose libraries cannot be loaded: libtorch_cpu.so" in result.stderr


def test_probe_finds_a_registration_that_does_nothing():
    code = """
import retrograd.torch
from retrograd.torch import _override
shared = _override._load()
class Deaf:
    def __getattr__(self, name):
        return getattr(shared, name)
    def retrograd_torch_install(self, operators, devices):
        return None
_override._shared = Deaf()
retrograd.torch.enable()
"""
    result = run(code)
    assert "aten::convolution_backward of cpu tensors does not reach Retrograd in this PyTorch" in result.stderr


def test_nothing_on_stderr():
    """PyTorch warns of kernels that are overridden; ours are meant to be."""
    run(ENABLE)  # so that it is built
    result = run(ENABLE)
    assert result.returncode == 0
    assert result.stderr == ""
