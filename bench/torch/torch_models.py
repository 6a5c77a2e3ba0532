#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One backward pass of small networks: PyTorch's own kernels against retrograd.torch, in turns, medians; layers: the best.

    python bench/torch/torch_models.py                        # all networks, types and layouts, policy auto
    python bench/torch/torch_models.py --policy always --models convnext --types bf16
    python bench/torch/torch_models.py --layers               # every backward operator of them by itself

Needs PyTorch and the package (scripts/torch-test makes an environment with both). Nothing else should run meanwhile."""

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
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def layout_of(name, rank):
    return {"nchw": torch.contiguous_format, "channels_last": {4: torch.channels_last, 5: torch.channels_last_3d}.get(rank)}[name]


class Backward:
    """The backward pass of one network; the forward pass before it is not timed."""

    def __init__(self, model, dtype, layout):
        torch.manual_seed(1)
        self.model, shape = MODELS[model]()
        self.model = self.model.to(dtype)
        self.x = torch.randn(shape).to(dtype)
        memory_format = layout_of(layout, len(shape))
        if memory_format is not None:
            self.model = self.model.to(memory_format=memory_format)
            self.x = self.x.to(memory_format=memory_format)
        self.x.requires_grad_()
        self.grad_output = torch.randn_like(self.model(self.x))

    def __call__(self):
        self.model.zero_grad(set_to_none=True)
        self.x.grad = None
        output = self.model(self.x)
        begin = clock()
        output.backward(self.grad_output)
        return clock() - begin


def in_turns(body, policy, rounds, repeats):
    """Seconds of stock and of ours, a list each. Each turn begins with a run that is not counted: plans are made in it."""
    times = [], []
    for _ in range(rounds):
        body()
        times[0].extend(body() for _ in range(repeats))
        with retrograd.torch.enable(policy=policy):
            body()
            times[1].extend(body() for _ in range(repeats))
    return times


def measure_models(arguments):
    rows = []
    print(f"| network | type | layout | stock ms | ours ms | ratio | taken | left |\n|---|---|---|---|---|---|---|---|", flush=True)
    for model in arguments.models:
        rank = len(MODELS[model]()[1])
        for dtype in arguments.types:
            for layout in arguments.layouts if rank > 3 else ["nchw"]:
                body = Backward(model, TYPES[dtype], layout)
                retrograd.torch.reset_stats()
                stock, ours = in_turns(body, arguments.policy, arguments.rounds, arguments.repeats)
                stats = retrograd.torch.stats()
                runs = arguments.rounds * (arguments.repeats + 1)
                taken = sum(value["taken"] for value in stats.values() if isinstance(value, dict)) // runs
                left = sum(sum(value["fell_back"].values()) for value in stats.values() if isinstance(value, dict)) // runs
                row = {"model": model, "type": dtype, "layout": layout, "stock_ms": 1e3 * statistics.median(stock),
                       "ours_ms": 1e3 * statistics.median(ours), "taken": taken, "left": left}
                row["ratio"] = row["stock_ms"] / row["ours_ms"]
                rows.append(row)
                print("| {model} | {type} | {layout} | {stock_ms:.2f} | {ours_ms:.2f} | {ratio:.2f} | {taken} | {left} |".format(**row),
                      flush=True)
    ratios = [row["ratio"] for row in rows]
    print(f"\ngeometric mean {math.exp(statistics.mean(map(math.log, ratios))):.2f}, least {min(ratios):.2f}")
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
    for model in arguments.models:
        rank = len(MODELS[model]()[1])
        for dtype in arguments.types:
            for layout in arguments.layouts if rank > 3 else ["nchw"]:
                recorder = Recorder()
                body = Backward(model, TYPES[dtype], layout)
                with recorder:
                    body()
                for function, call in recorder.calls.values():
                    def once(function=function, call=call):
                        begin = clock()
                        function(*call)
                        return clock() - begin

                    stock, ours = in_turns(once, arguments.policy, arguments.rounds, arguments.repeats)
                    row = {"model": model, "type": dtype, "layout": layout, "call": described(function, call),
                           "stock_us": 1e6 * min(stock), "ours_us": 1e6 * min(ours)}
                    row["ratio"] = row["stock_us"] / row["ours_us"]
                    rows.append(row)
                    print("{model:9} {type:4} {layout:13} {stock_us:9.0f} {ours_us:9.0f} {ratio:6.2f}  {call}".format(**row), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--layouts", nargs="+", choices=["nchw", "channels_last"], default=["nchw", "channels_last"])
    parser.add_argument("--policy", choices=["auto", "always", "depthwise"], default="auto")
    parser.add_argument("--rounds", type=int, default=6, help="turns of each side (6)")
    parser.add_argument("--repeats", type=int, default=4, help="runs that count in a turn (4)")
    parser.add_argument("--threads", type=int, help="torch.set_num_threads")
    parser.add_argument("--cpu-time", action="store_true", help="one thread, its CPU time: for machines with other work to do")
    parser.add_argument("--layers", action="store_true", help="every operator by itself")
    parser.add_argument("--json", metavar="FILE", help="the rows as JSON, too")
    arguments = parser.parse_args()
    if arguments.cpu_time:  # of this thread
        global clock
        arguments.threads, clock = 1, time.thread_time
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, policy {arguments.policy}, "
          f"ONEDNN_MAX_CPU_ISA {os.environ.get('ONEDNN_MAX_CPU_ISA', 'not set')}, RETROGRAD_CPU_ISA "
          f"{os.environ.get('RETROGRAD_CPU_ISA', 'not set')}\n")
    rows = (measure_layers if arguments.layers else measure_models)(arguments)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
