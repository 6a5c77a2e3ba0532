# SPDX-License-Identifier: Apache-2.0
"""Numbers of threads, several Python threads, and the same bits in all of them."""

import threading

import pytest
import torch
from counting import fell_back, taken
from training import digest, train

import retrograd.torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("pointwise", [False, True])
def test_same_weights_with_one_and_two_threads(pointwise, dtype, always):
    """Twenty steps of training. With a 1 x 1 convolution the forward pass, which is PyTorch's, stays on one thread."""
    digests = set()
    for threads in (1, 2, 1):
        torch.set_num_threads(threads)
        digests.add(digest(train(steps=20, dtype=dtype, pointwise=pointwise, forward_threads=1 if pointwise else None)))
    assert taken("convolution_backward") == 3 * 20 * 5
    assert taken("avg_pool2d_backward") == 3 * 20
    assert fell_back() == 0
    assert len(digests) == 1


def gradients(x, weight, **arguments):
    leaf = weight.clone().requires_grad_()
    torch.nn.functional.conv2d(x, leaf, **arguments).square().sum().backward()
    return leaf.grad


def test_number_of_threads_changes_in_mid_run(always):
    x, weight = torch.randn(4, 32, 28, 28), torch.randn(32, 32, 3, 3)
    output = torch.randn(4, 32, 26, 26)

    def call():
        return torch.ops.aten.convolution_backward.default(output, x, weight, [32], [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
                                                           [True] * 3)

    first = call()
    for threads in (1, 2, 3, 1, 8, 2):
        torch.set_num_threads(threads)
        for mine, theirs in zip(call(), first, strict=True):
            assert torch.equal(mine, theirs)
    assert taken() == 7


def test_several_python_threads(always):
    problems = [(torch.randn(2, 8, 12, 12 + i), torch.randn(8, 8 if i % 2 else 1, 3, 3), 1 if i % 2 else 8) for i in range(6)]
    expected = [gradients(x, weight, groups=groups) for x, weight, groups in problems]
    failures = []

    def work(seed):
        try:
            for step in range(40):
                x, weight, groups = problems[(seed + step) % len(problems)]
                if not torch.equal(gradients(x, weight, groups=groups), expected[(seed + step) % len(problems)]):
                    failures.append((seed, step))
        except Exception as error:  # noqa: BLE001 - a thread's exception would be lost
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert taken() == 6 + 160


def test_switching_while_others_compute():
    x, weight = torch.randn(2, 8, 12, 12), torch.randn(8, 8, 3, 3)
    expected = gradients(x.double(), weight.double())
    failures, stop = [], threading.Event()

    def work():
        try:
            while not stop.is_set():
                torch.testing.assert_close(gradients(x, weight).double(), expected, rtol=1e-4, atol=1e-3)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        with retrograd.torch.enable(policy="always"):
            gradients(x, weight)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_fall_back_on_several_threads(always):
    x, weight = torch.randn(2, 4, 9, 9, dtype=torch.float64), torch.randn(4, 4, 3, 3, dtype=torch.float64)
    expected, failures = gradients(x, weight), []

    def work():
        for _ in range(25):
            if not torch.allclose(gradients(x, weight), expected):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert fell_back() == 101
