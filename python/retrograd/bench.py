# SPDX-License-Identifier: Apache-2.0
"""`python -m retrograd.bench [--seconds S] [PROBLEM | FILE]…`: times problems on NumPy arrays, Python's part included.

One line a problem: the median of a call of its plan in microseconds, the rate, and who computes it. The program
`retrograd bench` measures the library alone, next to other libraries.
"""
from __future__ import annotations

import argparse
import math
import statistics
import sys
import time

import numpy as np

from ._problems import Problem, operands, parse, read


def operations(problem: Problem) -> float:
    """Multiplications and additions of grad_input and grad_weight, or of the output; of pooling: additions."""
    shapes = {name: tensor[1] for name, tensor in problem.plan.tensors.items()}
    wanted = ("grad_input" in shapes) + ("grad_weight" in shapes) + ("output" in shapes)
    y = shapes["output" if "output" in shapes else "grad_output"]
    if problem.keys["kind"] == "avgpool":
        axes = int(problem.keys.get("spatial", 0)) or len(shapes["input"]) - 2
        return math.prod(y) * math.prod(problem.numbers("kernel", axes, 1))
    if problem.keys["kind"] == "conv_tbc":
        return 2.0 * wanted * math.prod(y[:2]) * math.prod(shapes["weight"])
    narrow = shapes["input"] if problem.keys.get("transposed", "0") == "1" else y
    return 2.0 * wanted * narrow[0] * math.prod(narrow[2:]) * math.prod(shapes["weight"])


def median_microseconds(problem: Problem, seconds: float) -> float:
    """Results are made before: the time is that of the call."""
    arrays = operands(problem, np.random.default_rng(0))
    plan = problem.plan
    out = plan.empty("output") if "output" in plan.tensors else tuple(
        plan.empty(name) if name in plan.tensors else None for name in ("grad_input", "grad_weight", "grad_bias"))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        plan(**arrays, out=out)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:]) * 1e6


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m retrograd.bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each problem (%(default)s)")
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="a line of text, or a file of them")
    options = parser.parse_args(arguments)
    print(f"{'us':>10} {'GFLOP/s':>8}  problem and engines")
    for text in read(options.problems):
        try:
            problem = parse(text)
        except (TypeError, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
        us = median_microseconds(problem, options.seconds)
        print(f"{us:>10.1f} {operations(problem) / us / 1e3:>8.2f}  {text}\n{'':>21}{problem.plan.engines}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
