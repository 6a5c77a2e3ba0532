# SPDX-License-Identifier: Apache-2.0
"""Plans, explain, info, the cache, the stubs and the modules that run."""
import ast
import doctest
import importlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import integers

import retrograd
from retrograd import _core

TEXT = "conv input=2x3x6x5 weight=4x3x3x3 padding=1x1"


def arrays(random):
    return integers(random, (2, 4, 6, 5)), integers(random, (2, 3, 6, 5)), integers(random, (4, 3, 3, 3))


def test_a_plan_computes_what_the_function_does(random):
    plan = retrograd.plan(TEXT)
    dy, x, w = arrays(random)
    for a, b in zip(plan(dy, x, w), retrograd.conv_backward(dy, x, w, padding=1)):
        np.testing.assert_array_equal(a, b)
    assert "grad_input:cpu." in plan.engines and plan.cost > 0 and plan.workspace_bytes >= 0
    assert plan.tensors["grad_bias"] == ("f32", (4,), (1,))
    assert repr(plan) == f"Plan({TEXT!r}, 'cpu')"


def test_strides_and_types_of_a_plan(random):
    plan = retrograd.plan("conv input=2x3x6x5:bf16@90x1x15x3 weight=4x3x3x3:bf16 dtype=bf16 mask=w")
    x = plan.empty("input")
    assert x.dtype.name == "bfloat16" and x.strides == (180, 2, 30, 6)
    x[...] = integers(random, x.shape)
    dy = integers(random, (2, 4, 4, 3), x.dtype)
    got = plan(dy, x)
    assert got.grad_input is None and got.grad_bias is None
    exact = retrograd.conv_backward(dy, np.ascontiguousarray(x), np.empty((4, 3, 3, 3), x.dtype),
                                    wanted=(False, True, False))
    np.testing.assert_array_equal(got.grad_weight, exact.grad_weight)


def test_a_plan_refuses_other_arrays(random):
    plan = retrograd.plan(TEXT)
    dy, x, w = arrays(random)
    with pytest.raises(ValueError, match=r"input has the shape \(2, 3, 5, 6\), the plan is for \(2, 3, 6, 5\)"):
        plan(dy, x.reshape(2, 3, 5, 6), w)
    with pytest.raises(ValueError, match=r"weight has the strides"):
        plan(dy, x, w[..., ::-1])
    with pytest.raises(TypeError, match="another type"):
        plan(dy, x.astype(np.float16), w)
    with pytest.raises(ValueError, match="input has no data"):
        plan(dy, None, w)
    with pytest.raises(ValueError, match="grad_output has no data"):
        plan(None, x, w)
    pool = retrograd.plan("avgpool input=1x1x4 kernel=2")
    with pytest.raises(ValueError, match="weight is given, and the plan has none"):
        pool(np.ones((1, 1, 2), "f"), None, w)
    with pytest.raises(ValueError, match="out has a grad_bias"):
        pool(np.ones((1, 1, 2), "f"), out=(None, None, np.empty(1, "f")))


def test_texts_that_are_none():
    for text, words in (("", "is not one of conv, conv_tbc, avgpool"), ("conv input=1x1", "weight|rank"), ("pool input=1", "pool")):
        with pytest.raises(ValueError, match=words):
            retrograd.plan(text)
        with pytest.raises(ValueError, match=words):
            retrograd.explain(text)
    for device in ("gpu", "cuda:x", "cpu:-1", "cuda:1:2", ""):
        with pytest.raises(ValueError, match="device is"):
            retrograd.plan(TEXT, device)
    with pytest.raises(ValueError, match="cpu:7"):
        retrograd.plan(TEXT, "cpu:7")
    with pytest.raises(ValueError, match="cuda:99"):
        retrograd.plan(TEXT, "cuda:99")
    with pytest.raises(TypeError):
        _core.Plan()


def test_explain():
    told = retrograd.explain(TEXT)
    assert told.startswith("problem    conv input=2x3x6x5") and "takes it" in told and "workspace" in told
    with pytest.raises(ValueError, match=r"the kernel does not fit .*grad_output.shape\[2\] would be -5"):
        retrograd.explain("conv input=1x1x3 weight=1x1x9")


def test_info():
    found = retrograd.info()
    assert found["version"] == retrograd.__version__ and found["devices"][0].startswith("cpu:0, ")
    module = importlib.import_module("retrograd.info")  # hides the function, and can be called like it
    assert retrograd.info is module and retrograd.info()["version"] == found["version"]


def test_plans_are_kept_by_problem(random):
    retrograd.clear_cache()
    assert _core.cache_info() == (0, 0)
    dy, x, w = arrays(random)
    for _ in range(3):
        retrograd.conv_backward(dy, x, w, padding=1)
    assert _core.cache_info()[0] == 1
    retrograd.conv_backward(dy, x, w, padding=1, wanted=(True, False, True))
    retrograd.conv_backward(dy, np.asfortranarray(x), w, padding=1)
    retrograd.conv_backward(dy.astype(np.float16), x.astype(np.float16), w.astype(np.float16), padding=1)
    assert _core.cache_info()[0] == 4
    retrograd.clear_cache()
    assert _core.cache_info() == (0, 0)


def test_many_threads(random):
    """The same bits in every thread, while plans come and go."""
    calls = []
    for i in range(6):
        dy, x, w = (random.standard_normal(s).astype("f") for s in ((2, 4, 8 + i, 5), (2, 3, 8 + i, 5), (4, 3, 3, 3)))
        calls.append(((dy, x, w), retrograd.conv_backward(dy, x, w, padding=1)))
    failures = []

    def work(first):
        for i in range(200):
            operands, expected = calls[(first + i) % len(calls)]
            got = retrograd.conv_backward(*operands, padding=1)
            if not all(np.array_equal(a, b) for a, b in zip(got, expected)):
                failures.append(i)
            if i % 50 == 0:
                retrograd.clear_cache()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_gil_is_released():
    """While one thread is in a long call, another one counts: a call that held the GIL would let it count nothing."""
    plan = retrograd.plan("conv input=4x64x56x56 weight=64x64x3x3 padding=1x1")
    operands = [plan.empty(name) for name in ("grad_output", "input", "weight")]
    out = tuple(plan.empty(name) for name in ("grad_input", "grad_weight", "grad_bias"))
    inside, counted, longest = threading.Event(), [], 0.0

    def call():
        nonlocal longest
        try:
            for _ in range(20):
                inside.set()
                begin = time.perf_counter()
                plan(*operands, out=out)
                longest = max(longest, time.perf_counter() - begin)
        finally:
            inside.clear()

    thread = threading.Thread(target=call)
    thread.start()
    inside.wait()
    while inside.is_set():
        counted.append(time.perf_counter())
        time.sleep(0.0002)
    thread.join()
    # Holding the GIL, each of the 20 calls would be one gap: at most about 21 moments.
    assert len(counted) > 60, (len(counted), longest)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_makes_its_own_plans(random):
    dy, x, w = arrays(random)
    expected = retrograd.conv_backward(dy, x, w, padding=1)
    program = (
        "import os, sys, numpy as np, retrograd\n"
        "x = np.ones((1, 1, 4, 4), 'f'); w = np.ones((1, 1, 3, 3), 'f')\n"
        "first = retrograd.conv_backward(x, x, w, padding=1).grad_input\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    same = np.array_equal(retrograd.conv_backward(x, x, w, padding=1).grad_input, first)\n"
        "    os._exit(0 if same else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n")
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
    assert expected.grad_bias.shape == (4,)


@pytest.mark.parametrize("name", ["retrograd", "retrograd._backward", "retrograd._forward", "retrograd._plan",
                                  "retrograd._info", "retrograd.check"])
def test_docstrings(name):
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0 and failed == 0


def test_every_public_function_has_an_example():
    for name in ("conv_backward", "conv_tbc_backward", "avg_pool_backward", "conv", "conv_tbc", "avg_pool", "explain",
                 "plan"):
        assert ">>> " in getattr(retrograd, name).__doc__, name


def test_stubs_name_what_the_module_has():
    tree = ast.parse((Path(retrograd.__file__).parent / "_core.pyi").read_text())
    stubs = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert stubs == {name for name in dir(_core) if not name.startswith("_")}
    members = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    assert {n.name for n in members.body} == {name for name in dir(_core.Plan) if not name.startswith("_")}
    assert (Path(retrograd.__file__).parent / "py.typed").exists()


def run_module(*arguments):
    return subprocess.run([sys.executable, "-W", "error", "-m", *arguments], capture_output=True, text=True, timeout=120)


def test_modules_that_run():
    done = run_module("retrograd.info")
    assert done.returncode == 0 and f"version      {retrograd.__version__}" in done.stdout and not done.stderr
    done = run_module("retrograd.check")
    assert done.returncode == 0 and done.stdout.endswith("0 wrong\n"), done.stdout + done.stderr
    assert done.stdout.count("ok ") == 14
    done = run_module("retrograd.bench", "--seconds", "0.01", TEXT)
    assert done.returncode == 0 and "grad_weight:cpu." in done.stdout, done.stderr
    for module in ("retrograd.check", "retrograd.bench"):
        done = run_module(module, "conv input=1x1x3 weight=1x1x9")
        assert done.returncode == 2 and "the kernel does not fit into the padded input: grad_output.shape[2] would be -5" in done.stderr


def test_a_wrong_result_is_seen(monkeypatch):
    from retrograd import check
    right = check.expected
    monkeypatch.setattr(check, "expected", lambda *a: right(*a)._replace(grad_bias=right(*a).grad_bias + 1))
    assert check.check("conv input=1x2x5x5 weight=3x2x3x3")["grad_bias"] == 3
    assert check.main(["conv input=1x2x5x5 weight=3x2x3x3"]) == 1
