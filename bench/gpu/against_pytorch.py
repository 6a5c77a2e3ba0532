#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times every row of the GPU suite, ours and PyTorch's in turn on the same tensors, and checks one against the other.

    against_pytorch.py [--rows REGEX] [--types fp32,fp16,bf16,fp16-nhwc,bf16-nhwc] [--passes all|i|w|b] [--csv FILE]
"""
import argparse
import csv
import math
import re
import sys
import time

import torch

import retrograd_ctypes as rg
import suite

TYPES = {"fp32": (torch.float32, False), "fp16": (torch.float16, False), "bf16": (torch.bfloat16, False),
         "fp16-nhwc": (torch.float16, True), "bf16-nhwc": (torch.bfloat16, True), "fp32-nhwc": (torch.float32, True)}
LIMIT = {torch.float32: 5e-5, torch.float16: 2e-3, torch.bfloat16: 1.5e-2}  # relative L2


def layout(t, channels_last):
    if not channels_last or t.dim() == 3:
        return t.contiguous()
    return t.contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)


def one_time(run, count):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / count


def measure(ours, theirs, budget_ms):
    for run in (ours, theirs):
        run()
    torch.cuda.synchronize()
    counts = [max(1, min(200, int(budget_ms / max(one_time(run, 1), 1e-3) / 5))) for run in (ours, theirs)]
    times = ([], [])
    for _ in range(5):
        for i, run in enumerate((ours, theirs)):
            times[i].append(one_time(run, counts[i]))
    return [sorted(t)[2] for t in times]


def difference(a, b):
    a, b = a.double(), b.double()
    return ((a - b).norm() / b.norm().clamp_min(1e-30)).item()


def conv_row(lib, row, dtype, channels_last, mask, budget):
    name, ndim, n, cin, cout, groups, spatial, kernel, stride, pad, dil, transposed = row
    device = "cuda"
    x = layout(torch.randn(n, cin, *spatial, device=device, dtype=dtype), channels_last)
    shape = (cin, cout // groups, *kernel) if transposed else (cout, cin // groups, *kernel)
    w = layout(torch.randn(*shape, device=device, dtype=dtype) * 0.1, channels_last)
    if transposed:
        out = [(s - 1) * stride - 2 * pad + dil * (k - 1) + 1 for s, k in zip(spatial, kernel)]
    else:
        out = [(s + 2 * pad - dil * (k - 1) - 1) // stride + 1 for s, k in zip(spatial, kernel)]
    gy = layout(torch.randn(n, cout, *out, device=device, dtype=dtype), channels_last)
    ours = rg.Conv(lib, torch, gy, x, w, stride, pad, dil, transposed, groups, mask)

    def gradients(*operands):
        return torch.ops.aten.convolution_backward(*operands, [cout], [stride] * ndim, [pad] * ndim, [dil] * ndim,
                                                   transposed, [0] * ndim, groups, list(mask))

    def theirs():
        return gradients(gy, x, w)

    def differences(expected):
        return {name: difference(a, b) for name, a, b in zip("iwb", (ours.gx, ours.gw, ours.gb), expected) if a is not None}
    ours.run()
    found = differences(theirs())
    if dtype != torch.float32 and any(not value <= LIMIT[dtype] for value in found.values()):
        # PyTorch's 16-bit depthwise sums are off by up to 2.5e-3: its FP32 ones judge.
        found = differences(gradients(gy.float(), x.float(), w.float()))
    mine, peer = measure(ours.run, theirs, budget)
    size = dtype.itemsize
    passes = sum(mask[:2])
    moved = (passes * (x.numel() + gy.numel()) + (gy.numel() if mask[2] else 0) + passes * w.numel()) * size
    return found, mine, peer, moved


def forward_gradient(forward, gy, x, k, s, p):
    x = x.detach().contiguous().float().requires_grad_(True)
    return torch.autograd.grad(forward(x, k, s, p), x, gy.contiguous().float())[0]


def pool_row(lib, row, dtype, channels_last, budget):
    name, ndim, n, c, spatial, k, s, p = row
    x = layout(torch.randn(n, c, *spatial, device="cuda", dtype=dtype), channels_last).requires_grad_(True)
    forward = getattr(torch.nn.functional, f"avg_pool{ndim}d")
    with torch.no_grad():
        gy = layout(torch.randn_like(forward(x, k, s, p)), channels_last)
    ours = rg.Pool(lib, torch, gy, x.detach(), k, s, p)
    if ndim == 1:  # PyTorch itself goes through 2-D
        def theirs():
            return torch.ops.aten.avg_pool2d_backward(gy.unsqueeze(2), x.detach().unsqueeze(2), [1, k], [1, s], [0, p],
                                                      False, True, None).squeeze(2)
    else:
        op = getattr(torch.ops.aten, f"avg_pool{ndim}d_backward")

        def theirs():
            return op(gy, x.detach(), [k] * ndim, [s] * ndim, [p] * ndim, False, True, None)
    ours.run()
    found = {"i": difference(ours.gx, forward_gradient(forward, gy, x, k, s, p))}
    mine, peer = measure(ours.run, theirs, budget)
    return found, mine, peer, (x.numel() + gy.numel()) * dtype.itemsize


def copy_bandwidth():
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    b.copy_(a)
    return 2 * a.numel() / sorted(one_time(lambda: b.copy_(a), 10) for _ in range(5))[2] / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="")
    parser.add_argument("--types", default="fp32,fp16,bf16,fp16-nhwc")
    parser.add_argument("--passes", default="all")
    parser.add_argument("--csv")
    parser.add_argument("--milliseconds", type=float, default=20, help="about how long each side of a row is timed")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    mask = tuple(options.passes == "all" or p in options.passes for p in "iwb")
    lib = rg.Library(rg.find_library())
    copy = copy_bandwidth()
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, "
          f"copy {copy:.0f} GB/s", flush=True)
    print(f"{'row':26}{'type':11}{'ours ms':>10}{'torch ms':>10}{'ratio':>8}{'% copy':>8}  difference", flush=True)
    begin, rows, ratios, wrong = time.time(), [], [], 0
    for type_name in options.types.split(","):
        dtype, channels_last = TYPES[type_name]
        todo = [(r, False) for r in suite.SUITE] + ([(r, True) for r in suite.POOL] if options.passes == "all" else [])
        for row, is_pool in todo:
            if not re.search(options.rows, row[0]) or (channels_last and row[1] == 1) or time.time() - begin > options.seconds:
                continue
            try:
                if is_pool:
                    found, mine, peer, moved = pool_row(lib, row, dtype, channels_last, options.milliseconds)
                else:
                    found, mine, peer, moved = conv_row(lib, row, dtype, channels_last, mask, options.milliseconds)
            except Exception as error:  # one row must not cost the others
                print(f"{row[0]:26}{type_name:11} FAILED {error}", flush=True)
                wrong += 1
                continue
            worst = max(found.values(), key=lambda value: math.inf if math.isnan(value) else value)
            bad = [f"{name} {value:.1e}" for name, value in found.items() if not value <= LIMIT[dtype]]
            wrong += len(bad) > 0
            ratios.append(peer / mine)
            rows.append((row[0], type_name, mine, peer, peer / mine, moved / mine / 1e6 / copy * 100, worst))
            print(f"{row[0]:26}{type_name:11}{mine:10.4f}{peer:10.4f}{peer / mine:8.2f}{moved / mine / 1e6 / copy * 100:8.1f}"
                  f"  {worst:.1e}{'  WRONG: ' + ', '.join(bad) if bad else ''}", flush=True)
            torch.cuda.empty_cache()
    if ratios:
        print(f"geometric mean of torch/ours over {len(ratios)} rows: "
              f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}; wrong or failed: {wrong}")
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            csv.writer(file).writerows([("row", "type", "ours_ms", "torch_ms", "ratio", "percent_of_copy", "difference"), *rows])
    sys.exit(1 if wrong else 0)


main()
