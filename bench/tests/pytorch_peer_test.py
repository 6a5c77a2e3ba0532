# SPDX-License-Identifier: Apache-2.0
"""The PyTorch peer: its answers line by line, and its operators against loops written from the definition."""
import itertools
import pathlib
import subprocess
import sys
import unittest

PEERS = pathlib.Path(__file__).resolve().parent.parent / "peers"
sys.path.insert(0, str(PEERS))

import pytorch_peer  # noqa: E402

try:
    import torch
except ImportError as error:
    torch = None
    print(f"skipped: {error}; Debian has it as python3-torch")


def indices(shape):
    return itertools.product(*map(range, shape))


def conv_terms(x, w, y, stride, padding, dilation, transposed, groups):
    """(index of y, index of x, index of w) of every product of the forward operator."""
    outer, inner = (x, y) if transposed else (y, x)  # the window steps over `inner`
    per_group = outer.shape[1] // groups
    for n, c in indices(outer.shape[:2]):
        for p in indices(outer.shape[2:]):
            for i in range(w.shape[1]):
                for t in indices(w.shape[2:]):
                    q = [p[a] * stride[a] - padding[a] + t[a] * dilation[a] for a in range(len(p))]
                    if all(0 <= at < size for at, size in zip(q, inner.shape[2:])):
                        far = (n, c // per_group * w.shape[1] + i, *q)
                        near = (n, c, *p)
                        yield (far, near, (c, i, *t)) if transposed else (near, far, (c, i, *t))


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Values(unittest.TestCase):
    def check_conv(self, text):
        call = pytorch_peer.make_call(torch, text)
        y, x, w, _, stride, padding, dilation, transposed, _, groups, _ = call.args
        grad_x, grad_w, grad_b = torch.zeros_like(x), torch.zeros_like(w), y.sum((0, *range(2, y.dim())))
        for at_y, at_x, at_w in conv_terms(x, w, y, stride, padding, dilation, transposed, groups):
            grad_x[at_x] += y[at_y] * w[at_w]
            grad_w[at_w] += y[at_y] * x[at_x]
        for ours, theirs in zip((grad_x, grad_w, grad_b), call()):
            torch.testing.assert_close(theirs, ours)

    def test_conv(self):
        self.check_conv("conv input=2x4x6x5 weight=6x2x3x2 stride=2x1 padding=1x0 dilation=1x2 groups=2")
        self.check_conv("conv input=2x3x9 weight=4x3x3 padding=2")
        self.check_conv("conv input=1x2x4x4x4 weight=3x2x2x2x3 padding=1x0x1")

    def test_transposed(self):
        self.check_conv("conv input=2x4x3x4 weight=4x3x3x2 stride=2x2 padding=1x0 output_padding=1x0 transposed=1 groups=2")

    def test_the_mask(self):
        grad_x, grad_w, grad_b = pytorch_peer.make_call(torch, "conv input=1x2x5 weight=3x2x3 mask=wb")()
        self.assertIsNone(grad_x)
        self.assertEqual((grad_w.shape, grad_b.shape), ((3, 2, 3), (3,)))

    def test_avgpool(self):
        for axes in (1, 2, 3):
            call = pytorch_peer.make_call(
                torch, f"avgpool input=2x3{'x7' * axes} kernel=3 stride=2 padding=1 count_include_pad=1")
            y, x = call.args[:2]
            expected = torch.zeros_like(x)
            flat = axes == 1
            for at in indices(y.shape):
                space = at[3:] if flat else at[2:]
                for t in indices([3] * axes):
                    q = [2 * p - 1 + k for p, k in zip(space, t)]
                    if all(0 <= position < 7 for position in q):
                        expected[(*at[:2], *([0] if flat else []), *q)] += y[at] / 3**axes
            torch.testing.assert_close(call(), expected)

    def test_strides_are_the_problems(self):
        text = "conv input=2x3x4x5@60x1x15x3 weight=6x3x2x2@12x1x6x3 grad_output=2x6x3x4@72x1x24x6"
        for dtype in ("f32", "bf16"):
            y, x, w = pytorch_peer.make_call(torch, f"{text} dtype={dtype}").args[:3]
            self.assertEqual([each.stride() for each in (x, w, y)], [(60, 1, 15, 3), (12, 1, 6, 3), (72, 1, 24, 6)])

    def test_whole_calls(self):
        """What `sweep --passes all` asks for: every gradient in one call."""
        self.assertEqual([each.shape for each in pytorch_peer.make_call(torch, "conv input=1x2x5 weight=3x2x3")()],
                         [(1, 2, 5), (3, 2, 3), (3,)])
        grad_x, grad_w, grad_b = pytorch_peer.make_call(torch, "conv_tbc input=5x1x2 weight=3x2x4 pad=1")()
        self.assertEqual((grad_x.shape, grad_w.shape, grad_b.shape), ((5, 1, 2), (3, 2, 4), (4,)))

    def test_declined(self):
        with self.assertRaises(pytorch_peer.Declined):
            pytorch_peer.make_call(torch, "conv input=1x2x5 weight=3x2x3 dtype=e4m3")
        with self.assertRaises(pytorch_peer.Declined):
            pytorch_peer.make_call(torch, "conv input=1x2x5x5 weight=3x2x3x3 padding=0x1x0x1")


class OneDnnInside(unittest.TestCase):
    """The version is part of what a report says about the peer."""

    @staticmethod
    def text_for(available, config):
        from types import SimpleNamespace as Fake
        return pytorch_peer.onednn(Fake(backends=Fake(mkldnn=Fake(is_available=lambda: available)),
                                        __config__=Fake(show=lambda: config)))

    def test_text(self):
        line = "  - Intel(R) MKL-DNN v3.13.2 (Git Hash N/A)\n"
        self.assertEqual(self.text_for(True, "PyTorch built with:\n  - GCC 13.3\n" + line), "oneDNN 3.13.2 inside")
        self.assertEqual(self.text_for(True, "PyTorch built with:\n  - GCC 13.3\n"), "oneDNN inside")
        self.assertEqual(self.text_for(False, line), "without oneDNN")


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Protocol(unittest.TestCase):
    def test_a_conversation(self):
        lines = ["problem conv input=1x2x5 weight=3x2x3 mask=i", "time 0.001", "problem conv input=1 weight=1", "time 1",
                 "problem conv_tbc input=5x1x2 weight=3x2x4 pad=1", "time 0.001", "quit"]
        done = subprocess.run([sys.executable, str(PEERS / "pytorch_peer.py"), "--threads", "1"], text=True,
                              input="\n".join(lines) + "\n", capture_output=True, timeout=120, check=True)
        answers = done.stdout.splitlines()
        self.assertRegex(answers[0], "^ready PyTorch [0-9.]+.* 1 threads, .*(BLAS|Math Kernel Library).*, (oneDNN .*inside|without oneDNN)$")
        for index, pattern in enumerate(("^ok blas1$", "^ns [0-9]+ [0-9]+ blas1$", "^no .", "^no such command here",
                                         "^ok blas1$", "^ns [0-9]+ [0-9]+ blas1$"), 1):
            self.assertRegex(answers[index], pattern)
        self.assertEqual(len(answers), len(lines))


if __name__ == "__main__":
    unittest.main()
