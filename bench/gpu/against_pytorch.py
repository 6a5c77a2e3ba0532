#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times every row of the GPU suite, ours and PyTorch's in turn on the same tensors, and checks one against the other.

    against_pytorch.py [--rows REGEX] [--types fp32,fp16,bf16,fp16-nhwc,bf16-nhwc] [--passes all|i|w|b] [--csv FILE]
    against_pytorch.py --seed 7 --count 110     drawn rows instead of the suite's: percentiles by family, the worst
    against_pytorch.py --forward …              forward results with a bias instead of gradients; no transposed rows
    against_pytorch.py --tf32 …                 FP32 products may be rounded to TF32 on both sides
"""
import argparse
import csv
import math
import re
import sys
import time

import torch

import drawn
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


def by_axis(row):
    """The row with its windows by axis, as drawn ones have them."""
    ndim = row[1]
    return row[:8] + tuple(v if isinstance(v, tuple) else (v,) * ndim for v in row[8:11]) + row[11:]


def problem_text(row, type_name):
    """The problem as `retrograd explain` reads it."""
    def sizes(values, last):
        text = "x".join(map(str, values))
        if not last:
            return text
        steps, step = [], 1
        for size in reversed(values[2:]):
            steps.insert(0, step * values[1])
            step *= size
        return text + "@" + "x".join(map(str, (step * values[1], 1, *steps)))
    dtype, _, last = type_name.replace("fp", "f").partition("-")
    if len(row) < 12:
        _, ndim, n, c, spatial, k, s, p = row
        out = [drawn.out_size(size, k, s, p, 1, False) for size in spatial]
        same = f" grad_input={sizes((n, c, *spatial), last)}" if last else ""
        return (f"avgpool input={sizes((n, c, *spatial), last)} grad_output={sizes((n, c, *out), last)} "
                f"kernel={sizes((k,) * ndim, '')} stride={sizes((s,) * ndim, '')} padding={sizes((p,) * ndim, '')}{same} "
                f"dtype={dtype}")
    _, ndim, n, cin, cout, groups, spatial, kernel, stride, pad, dil, transposed = by_axis(row)
    weight = (cin, cout // groups, *kernel) if transposed else (cout, cin // groups, *kernel)
    out = [drawn.out_size(*one, transposed) for one in zip(spatial, kernel, stride, pad, dil)]
    x = sizes((n, cin, *spatial), last)
    w = sizes(weight, last)
    same = f" grad_input={x} grad_weight={w}" if last else ""
    return (f"conv input={x} weight={w} grad_output={sizes((n, cout, *out), last)} stride={sizes(stride, '')} "
            f"padding={sizes(pad, '')} dilation={sizes(dil, '')} groups={groups} "
            f"{'transposed=1 ' if transposed else ''}{same.strip()}{' ' if same else ''}dtype={dtype}")


def conv_row(lib, row, dtype, channels_last, mask, budget, text=None):
    """text: the problem with math=1, where FP32 may be rounded."""
    name, ndim, n, cin, cout, groups, spatial, kernel, stride, pad, dil, transposed = by_axis(row)
    device = "cuda"
    x = layout(torch.randn(n, cin, *spatial, device=device, dtype=dtype), channels_last)
    shape = (cin, cout // groups, *kernel) if transposed else (cout, cin // groups, *kernel)
    w = layout(torch.randn(*shape, device=device, dtype=dtype) * 0.1, channels_last)
    out = [drawn.out_size(*one, transposed) for one in zip(spatial, kernel, stride, pad, dil)]
    gy = layout(torch.randn(n, cout, *out, device=device, dtype=dtype), channels_last)
    ours = (rg.TextConv(lib, torch, text, gy, x, w, mask) if text else
            rg.Conv(lib, torch, gy, x, w, stride, pad, dil, transposed, groups, mask))

    def gradients(*operands):
        return torch.ops.aten.convolution_backward(*operands, [cout], stride, pad, dil, transposed, [0] * ndim,
                                                   groups, list(mask))

    def theirs():
        return gradients(gy, x, w)

    def differences(expected):
        return {name: difference(a, b) for name, a, b in zip("iwb", (ours.gx, ours.gw, ours.gb), expected) if a is not None}
    ours.run()
    found = differences(theirs())
    if any(not value <= LIMIT[dtype] for value in found.values()):
        # PyTorch's 16-bit depthwise sums are off by up to 2.5e-3, its FP32 grad_weight of some 5 x 5 kernels by 1.8e-3:
        # the next wider type judges.
        wider = torch.float64 if dtype == torch.float32 else torch.float32
        found = differences(gradients(*(each.to(wider) for each in (gy, x, w))))
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


def forward_row(lib, row, dtype, channels_last, budget):
    name, ndim, n, cin, cout, groups, spatial, kernel, stride, pad, dil, _ = by_axis(row)
    x = layout(torch.randn(n, cin, *spatial, device="cuda", dtype=dtype), channels_last)
    w = layout(torch.randn(cout, cin // groups, *kernel, device="cuda", dtype=dtype) * 0.1, channels_last)
    bias = torch.randn(cout, device="cuda", dtype=dtype)

    def convolution(*operands):
        return torch.ops.aten.convolution(*operands, stride, pad, dil, False, [0] * ndim, groups)
    expected = convolution(x.float(), w.float(), bias.float())
    ours = rg.Forward(lib, torch, layout(expected, channels_last), x, w, bias, stride, pad, dil)
    ours.run()
    found = {"y": difference(ours.y, expected)}
    elements, size = x.numel() + expected.numel() + w.numel(), dtype.itemsize
    del expected
    mine, peer = measure(ours.run, lambda: convolution(x, w, bias), budget)
    return found, mine, peer, elements * size


def pool_forward_row(lib, row, dtype, channels_last, budget):
    name, ndim, n, c, spatial, k, s, p = row
    x = layout(torch.randn(n, c, *spatial, device="cuda", dtype=dtype), channels_last)
    forward = getattr(torch.nn.functional, f"avg_pool{ndim}d")
    expected = forward(x.float(), k, s, p)
    ours = rg.PoolForward(lib, torch, layout(expected, channels_last), x, k, s, p)
    ours.run()
    found = {"y": difference(ours.y, expected)}
    mine, peer = measure(ours.run, lambda: forward(x, k, s, p), budget)
    return found, mine, peer, (x.numel() + expected.numel()) * dtype.itemsize


def copy_bandwidth():
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    b.copy_(a)
    return 2 * a.numel() / sorted(one_time(lambda: b.copy_(a), 10) for _ in range(5))[2] / 1e6


def print_distribution(rows, texts):
    """Percentiles of the ratio by family and type, and the worst rows."""
    print(f"\n{'':22}{'figures':>8}{'mean':>7}{'least':>7}{'5 %':>7}{'25 %':>7}{'50 %':>7}{'75 %':>7}{'< 0.9':>7}{'< 1.05':>7}")
    kinds = [("all", lambda row: True)]
    kinds += [(name, lambda row, name=name: row[0] == name) for name in sorted({row[0] for row in rows})]
    kinds += [(name, lambda row, name=name: row[1] == name) for name in sorted({row[1] for row in rows})]
    for name, belongs in kinds:
        found = sorted(row[4] for row in rows if belongs(row))
        at = [found[min(len(found) - 1, int(len(found) * p))] for p in (0, 0.05, 0.25, 0.5, 0.75)]
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{name:22}{len(found):8}{mean:7.2f}" + "".join(f"{value:7.2f}" for value in at) +
              f"{sum(v < 0.9 for v in found):7}{sum(v < 1.05 for v in found):7}")
    print("\nthe worst: ratio, ours and PyTorch's ms, the problem")
    for row, text in sorted(zip(rows, texts), key=lambda pair: pair[0][4])[:40]:
        print(f"{row[4]:6.2f} {row[2]:8.4f} {row[3]:8.4f}  {text}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="")
    parser.add_argument("--types", default="fp32,fp16,bf16,fp16-nhwc")
    parser.add_argument("--passes", default="all")
    parser.add_argument("--csv")
    parser.add_argument("--milliseconds", type=float, default=20, help="about how long each side of a row is timed")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--seed", type=int, help="of drawn rows")
    parser.add_argument("--count", type=int, default=110, help="drawn rows; each in every type")
    parser.add_argument("--each-gradient-below", type=float, default=0, metavar="RATIO",
                        help="time gradients one by one where all of them are below")
    parser.add_argument("--forward", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = options.tf32
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    mask = tuple(options.passes == "all" or p in options.passes for p in "iwb")
    lib = rg.Library(rg.find_library())
    copy = copy_bandwidth()
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, "
          f"copy {copy:.0f} GB/s", flush=True)
    print(f"{'row':26}{'type':11}{'ours ms':>10}{'torch ms':>10}{'ratio':>8}{'% copy':>8}  difference", flush=True)
    begin, rows, ratios, wrong, texts = time.time(), [], [], 0, []
    convolutions, poolings = (suite.SUITE, suite.POOL) if options.seed is None else drawn.rows(options.seed, options.count)
    todo = [(r, False) for r in convolutions] + ([(r, True) for r in poolings] if options.passes == "all" else [])
    types = options.types.split(",")
    # Drawn rows are taken row by row, so that a run that is stopped has every type.
    jobs = [(t, *r) for t in types for r in todo] if options.seed is None else [(t, *r) for r in todo for t in types]
    for type_name, row, is_pool in jobs:
        dtype, channels_last = TYPES[type_name]
        if not re.search(options.rows, row[0]) or (channels_last and row[1] == 1) or time.time() - begin > options.seconds:
            continue
        if options.forward and not is_pool and row[11]:
            continue
        text = problem_text(row, type_name) + (" forward=1" if options.forward else " math=1" if options.tf32 else "")
        try:
            if options.forward:
                run = pool_forward_row if is_pool else forward_row
                found, mine, peer, moved = run(lib, row, dtype, channels_last, options.milliseconds)
            elif is_pool:
                found, mine, peer, moved = pool_row(lib, row, dtype, channels_last, options.milliseconds)
            else:
                found, mine, peer, moved = conv_row(lib, row, dtype, channels_last, mask, options.milliseconds,
                                                    text if options.tf32 else None)
        except Exception as error:  # one row must not cost the others
            print(f"{row[0]:26}{type_name:11} FAILED {error}: {text}", flush=True)
            wrong += 1
            torch.cuda.empty_cache()
            continue
        texts.append(text)
        if not is_pool and not options.forward and peer < options.each_gradient_below * mine:
            for i, letter in enumerate("iwb"):
                _, m, t, _ = conv_row(lib, row, dtype, channels_last, [i == j for j in range(3)], options.milliseconds)
                texts[-1] += f" | {letter} {m:.4f} {t:.4f}"
        worst = max(found.values(), key=lambda value: math.inf if math.isnan(value) else value)
        limit = 2e-3 if options.tf32 else LIMIT[dtype]
        bad = [f"{name} {value:.1e}" for name, value in found.items() if not value <= limit]
        wrong += len(bad) > 0
        ratios.append(peer / mine)
        rows.append((row[0], type_name, mine, peer, peer / mine, moved / mine / 1e6 / copy * 100, worst))
        print(f"{row[0]:26}{type_name:11}{mine:10.4f}{peer:10.4f}{peer / mine:8.2f}{moved / mine / 1e6 / copy * 100:8.1f}"
              f"  {worst:.1e}{'  WRONG: ' + ', '.join(bad) if bad else ''}", flush=True)
        torch.cuda.empty_cache()
    if options.seed is not None and rows:
        print_distribution(rows, texts)
    if ratios:
        print(f"geometric mean of torch/ours over {len(ratios)} rows: "
              f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}; wrong or failed: {wrong}")
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            csv.writer(file).writerows([("row", "type", "ours_ms", "torch_ms", "ratio", "percent_of_copy", "difference", "problem"),
                                        *(row + (text,) for row, text in zip(rows, texts))])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
