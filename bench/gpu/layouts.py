#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What layouts cost that are not dense: every family with operands that are slices, expanded, mixed, of odd pitch or at odd
addresses, next to the same problem with dense operands and to PyTorch on the same tensors.

    layouts.py [--milliseconds 5] [--csv FILE]
"""
import argparse
import csv
import math
import sys

import torch

import against_pytorch as bench
import drawn
import retrograd_ctypes as rg

# name, n, cin, cout, groups, spatial, kernel, stride, pad
FAMILIES = (
    ("dense 3x3", 16, 64, 64, 1, (56, 56), (3, 3), (1, 1), (1, 1)),
    ("dense 1x1", 16, 256, 64, 1, (28, 28), (1, 1), (1, 1), (0, 0)),
    ("dense 3x3 s2", 16, 64, 128, 1, (56, 56), (3, 3), (2, 2), (1, 1)),
    ("groups of 16", 16, 128, 128, 8, (28, 28), (3, 3), (1, 1), (1, 1)),
    ("depthwise 3x3", 16, 96, 96, 96, (56, 56), (3, 3), (1, 1), (1, 1)),
    ("depthwise 5x5 s2", 16, 96, 96, 96, (56, 56), (5, 5), (2, 2), (2, 2)),
    ("stem 7x7 s2", 8, 3, 64, 1, (112, 112), (7, 7), (2, 2), (3, 3)),
    ("1-D k9", 16, 128, 128, 1, (1000,), (9,), (1,), (4,)),
    ("3-D 3x3x3", 4, 32, 32, 1, (16, 16, 16), (3, 3, 3), (1, 1, 1), (1, 1, 1)),
    ("pool 3x3 s2", 16, 96, None, None, (56, 56), (3, 3), (2, 2), (1, 1)),
    ("pool 2x2", 16, 96, None, None, (56, 56), (2, 2), (2, 2), (0, 0)),
)


def channel_slice(t):
    """The first half of the channels of a tensor with twice as many."""
    return torch.cat((t, t), 1)[:, :t.shape[1]]


def odd_pitch(t):
    """Rows that begin an odd number of elements after each other."""
    wide = torch.nn.functional.pad(t, (0, 1 + t.shape[-1] % 2))
    return wide[..., :t.shape[-1]]


def odd_address(t):
    flat = torch.empty(t.numel() + 1, dtype=t.dtype, device=t.device)[1:].view(t.shape)
    return flat.copy_(t)


def expanded(t):
    """One image for the whole batch: a stride of 0."""
    return t[:1].expand(t.shape)


def last(t):
    return bench.layout(t, True)


def same(t):
    return t


# name: what becomes of grad_output, of x
LAYOUTS = {"slice of channels": (same, channel_slice), "both slices": (channel_slice, channel_slice),
           "expanded grad_output": (expanded, same), "NHWC grad_output": (last, same), "NHWC x": (same, last),
           "odd pitch": (odd_pitch, odd_pitch), "odd addresses": (odd_address, odd_address)}


def conv(lib, row, dtype, change):
    _, n, cin, cout, groups, spatial, kernel, stride, pad = row
    ndim, one = len(spatial), (1,) * len(spatial)
    out = [drawn.out_size(*axis, False) for axis in zip(spatial, kernel, stride, pad, one)]
    gy = change[0](torch.randn(n, cout, *out, device="cuda", dtype=dtype))
    x = change[1](torch.randn(n, cin, *spatial, device="cuda", dtype=dtype))
    w = torch.randn(cout, cin // groups, *kernel, device="cuda", dtype=dtype)
    ours = rg.Conv(lib, torch, gy, x, w, stride, pad, one, False, groups)
    return ours.run, lambda: torch.ops.aten.convolution_backward(gy, x, w, [cout], stride, pad, one, False, [0] * ndim, groups,
                                                                 [True] * 3)


def pool(lib, row, dtype, change):
    _, n, c, _, _, spatial, kernel, stride, pad = row
    out = [drawn.out_size(*axis, 1, False) for axis in zip(spatial, kernel, stride, pad)]
    gy = change[0](torch.randn(n, c, *out, device="cuda", dtype=dtype))
    x = change[1](torch.randn(n, c, *spatial, device="cuda", dtype=dtype))
    ours = rg.Pool(lib, torch, gy, x, kernel, stride, pad)
    return ours.run, lambda: torch.ops.aten.avg_pool2d_backward(gy, x, kernel, stride, pad, False, True, None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--milliseconds", type=float, default=5)
    parser.add_argument("--csv")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    lib = rg.Library(rg.find_library())
    rows = []
    print(f"{'family':18}{'type':6}{'layout':22}{'dense ms':>10}{'ours ms':>10}{'times':>7}{'PyTorch':>9}{'ratio':>7}")
    for row in FAMILIES:
        make = pool if row[3] is None else conv
        for name, dtype in (("f32", torch.float32), ("f16", torch.float16)):
            dense, _ = bench.measure(*make(lib, row, dtype, (same, same)), options.milliseconds)
            for title, change in LAYOUTS.items():
                mine, peer = bench.measure(*make(lib, row, dtype, change), options.milliseconds)
                rows.append((row[0], name, title, dense, mine, mine / dense, peer, peer / mine))
                print(f"{row[0]:18}{name:6}{title:22}{dense:10.4f}{mine:10.4f}{mine / dense:7.2f}{peer:9.4f}{peer / mine:7.2f}")
    print(f"{len(rows)} figures: at most {max(row[5] for row in rows):.2f} times the dense time, "
          f"{sum(row[5] > 2.5 for row in rows)} above 2.5; {min(row[7] for row in rows):.2f} of PyTorch at least, "
          f"{sum(row[7] < 0.9 for row in rows)} below 0.9, mean {math.exp(sum(math.log(row[7]) for row in rows) / len(rows)):.2f}")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("family", "type", "layout", "dense_ms", "ours_ms", "times_dense", "torch_ms", "ratio"),
                                        *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
