#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One backward pass of small networks: PyTorch's own kernels against retrograd.torch, in turns, medians; layers: the best.

    python bench/torch/torch_models.py                        # all networks, types and layouts, policy auto
    python bench/torch/torch_models.py --policy always --models convnext --types bf16
    python bench/torch/torch_models.py --layers               # every backward operator of them by itself
    python bench/torch/torch_models.py --device cuda --seconds 80      # on a GPU, with autocast and in float32, in 80 s

Needs PyTorch and the package (scripts/torch-test makes an environment with both), or a checkout and RETROGRAD_LIBRARY.
Nothing else should run meanwhile. On a GPU times are those between two events on the stream, around the backward pass; its
work is queued while the forward pass still runs, as in training. With --queued the GPU waits until all of it is queued, so
that the time which the CPU takes to queue it does not count."""

import argparse
import json
import math
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from models import MODELS

import retrograd.torch

clock = time.perf_counter
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
AUTOCAST = {"amp": torch.float16, "amp_bf16": torch.bfloat16}  # parameters in float32
# What is measured unless it is said, and how many times the batch of models.py. A GPU has little to do with less.
DEFAULTS = {"cpu": (["f32", "bf16"], 1), "cuda": (["amp", "f32"], 16)}


def layout_of(name, rank):
    return {"nchw": torch.contiguous_format, "channels_last": {4: torch.channels_last, 5: torch.channels_last_3d}.get(rank)}[name]


class CpuTimer:
    def __init__(self):
        self.begin = clock()

    def seconds(self):
        return clock() - self.begin


class GpuTimer:
    """Between two events on the current stream, in its order."""

    def __init__(self):
        self.begin, self.end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.begin.record()

    def seconds(self):
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) / 1e3


TIMERS = {"cpu": CpuTimer, "cuda": GpuTimer}


class Backward:
    """The backward pass of one network; the forward pass before it is not timed."""

    def __init__(self, model, type_name, layout, arguments):
        torch.manual_seed(1)
        device, batch, self.queued = arguments.device, arguments.batch, arguments.queued
        self.device, self.autocast = device, AUTOCAST.get(type_name)
        dtype = TYPES.get(type_name, torch.float32)
        self.model, shape = MODELS[model]()
        self.model = self.model.to(device, dtype)
        self.x = torch.randn((batch * shape[0], *shape[1:])).to(device, dtype)
        memory_format = layout_of(layout, len(shape))
        if memory_format is not None:
            self.model = self.model.to(memory_format=memory_format)
            self.x = self.x.to(memory_format=memory_format)
        self.x.requires_grad_()
        self.grad_output = torch.randn_like(self.forward())

    def forward(self):
        with torch.autocast(self.device, self.autocast, enabled=self.autocast is not None):
            return self.model(self.x)

    def __call__(self):
        self.model.zero_grad(set_to_none=True)
        self.x.grad = None
        if self.queued:
            torch.cuda._sleep(50_000_000)  # cycles: about 25 ms
        output = self.forward()
        timer = TIMERS[self.device]()
        output.backward(self.grad_output)
        return timer.seconds()


def in_turns(body, arguments, seconds=math.inf):
    """Seconds of stock and of ours, a list each, and the calls of ours: taken, left. Each turn begins with a run that is
    not counted: plans are made in it. It ends after so many seconds, with one turn at least."""
    times, end = ([], []), time.perf_counter() + seconds
    retrograd.torch.reset_stats()
    runs = 0
    for _ in range(arguments.rounds):
        body()
        times[0].extend(body() for _ in range(arguments.repeats))
        with retrograd.torch.enable(policy=arguments.policy, devices=arguments.device):
            body()
            times[1].extend(body() for _ in range(arguments.repeats))
        runs += arguments.repeats + 1
        if time.perf_counter() >= end:
            break
    counts = [value for value in retrograd.torch.stats().values() if isinstance(value, dict)]
    taken = sum(value["taken"] for value in counts) // runs
    left = sum(sum(value["fell_back"].values()) for value in counts) // runs
    return *times, taken, left


def chosen(arguments):
    """(network, type, layout) of each row."""
    return [(model, dtype, layout) for model in arguments.models for dtype in arguments.types
            for layout in (arguments.layouts if len(MODELS[model]()[1]) > 3 else ["nchw"])]


def geometric_mean(values):
    return math.exp(statistics.mean(map(math.log, values)))


def measure_models(arguments):
    rows, todo = [], chosen(arguments)
    end = time.perf_counter() + arguments.seconds
    print("| network | type | layout | stock ms | ours ms | ratio | taken | left |\n|---|---|---|---|---|---|---|---|", flush=True)
    for number, (model, dtype, layout) in enumerate(todo):
        remaining = end - time.perf_counter()
        if remaining <= 0:
            print(f"\nno time for {len(todo) - number} of {len(todo)} rows: {', '.join(' '.join(row) for row in todo[number:])}")
            break
        begin = time.perf_counter()
        body = Backward(model, dtype, layout, arguments)
        made = time.perf_counter() - begin
        stock, ours, taken, left = in_turns(body, arguments, remaining / (len(todo) - number) - made)
        row = {"model": model, "type": dtype, "layout": layout, "stock_ms": 1e3 * statistics.median(stock),
               "ours_ms": 1e3 * statistics.median(ours), "taken": taken, "left": left, "runs": len(stock)}
        row["ratio"] = row["stock_ms"] / row["ours_ms"]
        rows.append(row)
        print("| {model} | {type} | {layout} | {stock_ms:.2f} | {ours_ms:.2f} | {ratio:.2f} | {taken} | {left} |".format(**row),
              flush=True)
    ratios = [row["ratio"] for row in rows]
    print(f"\ngeometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    for what in ("model", "type", "layout"):
        kinds = dict.fromkeys(row[what] for row in rows)
        print(f"by {what}: " + ", ".join(f"{kind} {geometric_mean([r['ratio'] for r in rows if r[what] == kind]):.2f}" for kind in kinds))
    return rows


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    """The backward operators that a network calls, with their arguments."""

    OPERATORS = ("aten::convolution_backward", "aten::avg_pool2d_backward", "aten::avg_pool3d_backward")

    def __init__(self):
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function._schema.name in self.OPERATORS:
            key = (function._schema.name, *(f"{tuple(a.shape)}{tuple(a.stride())}{a.dtype}" if isinstance(a, torch.Tensor) else str(a)
                                            for a in arguments))
            self.calls.setdefault(key, (function, [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]))
        return function(*arguments, **(keywords or {}))


def described(function, arguments):
    name = function._schema.name.removeprefix("aten::").removesuffix("_backward")
    shapes = " ".join("x".join(map(str, a.shape)) for a in arguments if isinstance(a, torch.Tensor))
    rest = " ".join(str(a).replace(" ", "") for a in arguments[3:] if not isinstance(a, torch.Tensor))
    return f"{name} {shapes} {rest}"


def measure_layers(arguments):
    rows = []
    for model, dtype, layout in chosen(arguments):
        recorder = Recorder()
        body = Backward(model, dtype, layout, arguments)
        with recorder:
            body()
        for function, call in recorder.calls.values():
            def once(function=function, call=call):
                timer = TIMERS[arguments.device]()
                function(*call)
                return timer.seconds()

            stock, ours, _, _ = in_turns(once, arguments)
            row = {"model": model, "type": dtype, "layout": layout, "call": described(function, call),
                   "stock_us": 1e6 * min(stock), "ours_us": 1e6 * min(ours)}
            row["ratio"] = row["stock_us"] / row["ours_us"]
            rows.append(row)
            print("{model:9} {type:8} {layout:13} {stock_us:9.0f} {ours_us:9.0f} {ratio:6.2f}  {call}".format(**row), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--device", choices=DEFAULTS, default="cpu")
    parser.add_argument("--types", nargs="+", choices=[*TYPES, *AUTOCAST], help="default on CPUs: f32 bf16, on GPUs: amp f32")
    parser.add_argument("--batch", type=int, help="times the batch of models.py (1, on GPUs 16)")
    parser.add_argument("--layouts", nargs="+", choices=["nchw", "channels_last"], default=["nchw", "channels_last"])
    parser.add_argument("--policy", choices=["auto", "always", "depthwise"], default="auto")
    parser.add_argument("--rounds", type=int, help="turns of each side at most (6; with --seconds 1000)")
    parser.add_argument("--repeats", type=int, help="runs that count in a turn (4, on GPUs 10)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for all rows together, divided between them")
    parser.add_argument("--queued", action="store_true", help="GPUs: without the time that the CPU takes to queue the work")
    parser.add_argument("--cudnn-benchmark", action="store_true", help="torch.backends.cudnn.benchmark: stock tries its kernels")
    parser.add_argument("--threads", type=int, help="torch.set_num_threads")
    parser.add_argument("--cpu-time", action="store_true", help="one thread, its CPU time: for machines with other work to do")
    parser.add_argument("--layers", action="store_true", help="every operator by itself")
    parser.add_argument("--json", metavar="FILE", help="the rows as JSON, too")
    arguments = parser.parse_args()
    types, batch = DEFAULTS[arguments.device]
    arguments.types, arguments.batch = arguments.types or types, arguments.batch or batch
    arguments.rounds = arguments.rounds or (6 if math.isinf(arguments.seconds) else 1000)
    arguments.repeats = arguments.repeats or (4 if arguments.device == "cpu" else 10)
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no NVIDIA GPU")
    if arguments.device == "cpu" and arguments.queued:
        sys.exit("--queued is for GPUs")
    if arguments.device == "cuda" and arguments.cpu_time:
        sys.exit("--cpu-time is for CPUs")
    torch.backends.cudnn.benchmark = arguments.cudnn_benchmark
    if arguments.cpu_time:  # of this thread
        global clock
        arguments.threads, clock = 1, time.thread_time
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    where = torch.cuda.get_device_name() if arguments.device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {where}, batch x {arguments.batch}, policy {arguments.policy}, "
          f"ONEDNN_MAX_CPU_ISA {os.environ.get('ONEDNN_MAX_CPU_ISA', 'not set')}, RETROGRAD_CPU_ISA "
          f"{os.environ.get('RETROGRAD_CPU_ISA', 'not set')}\n")
    rows = (measure_layers if arguments.layers else measure_models)(arguments)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
