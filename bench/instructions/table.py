#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions an operation of every CPU implementation, AVX2 and NEON, counted by qemu: a table in Markdown.

table.py COUNTER X86_PROGRAM ARM_PROGRAM ARM_ROOT   COUNTER: qemu_counter.c, compiled for this machine
scripts/aarch64 --counts builds both programs (count_calls.cpp) and calls this.
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# Small, since qemu computes floats in software; each family of implementations takes one of them.
PROBLEMS = [
    "conv input=1x64x14x14 weight=64x64x3x3 padding=1x1",
    "conv input=1x64x14x14 weight=64x64x1x1",
    "conv input=1x64x14x14 weight=64x64x3x3 padding=1x1 math=1 winograd=1",
    "conv input=1x3x32x32 weight=32x3x7x7 stride=2x2 padding=3x3",
    "conv input=1x32x28x28 weight=32x4x3x3 padding=1x1 groups=8",
    "conv input=1x32x28x28 weight=32x1x3x3 padding=1x1 groups=32",
    "conv input=1x32x28x28@25088x1x896x32 grad_output=1x32x28x28@25088x1x896x32 weight=32x1x3x3 padding=1x1 groups=32",
    "conv input=1x64x256 weight=64x1x7 padding=3 groups=64",
    "conv input=1x3x32x32 weight=64x3x4x4 stride=4x4",
    "avgpool input=1x16x28x28 kernel=3x3 stride=2x2",
    "avgpool input=1x16x28x28 kernel=3x3 stride=2x2 forward=1",
    "conv input=1x64x14x14 weight=64x64x3x3 padding=1x1 dtype=f16",
    "conv input=1x64x14x14 weight=64x64x3x3 padding=1x1 dtype=bf16",
    "conv input=1x64x14x14 weight=64x64x3x3 padding=1x1 mask=i dtype=e4m3",
    "conv input=1x64x14x14 weight=64x64x3x3 padding=1x1 mask=i dtype=hif8",
    "conv input=1x32x28x28 weight=32x1x3x3 padding=1x1 groups=32 dtype=f16",
    "conv input=1x32x28x28 weight=32x1x3x3 padding=1x1 groups=32 dtype=bf16",
    "avgpool input=1x16x28x28 kernel=3x3 stride=2x2 dtype=bf16",
]


def counts(command, isa):
    """{(problem, pass, implementation): (instructions, of them on vectors, operations, chosen)}"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RETROGRAD_")}
    environment |= {"RETROGRAD_NUM_THREADS": "1", "RETROGRAD_CPU_ISA": isa}
    run = subprocess.run([*command, *PROBLEMS], env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: {run.stderr}")
    found, problem, call, at, begin = {}, None, None, (0, 0), (0, 0)
    for line in run.stdout.splitlines():
        word, *rest = line.split(" ")
        if word == "counted":  # in front of the line that it belongs to
            at = tuple(map(int, rest))
        elif word == "target":
            if rest[0] != {"avx2": "AVX2", "neon": "NEON"}[isa]:
                sys.exit(f"the kernels use {rest[0]} instead of {isa}")
        elif word == "problem":
            problem = " ".join(rest)
        elif word == "begin":
            call, begin = rest, at
        elif word == "end":
            name, kind, operations, chosen = call
            found[problem, kind, name] = (at[0] - begin[0], at[1] - begin[1], float(operations), chosen == "chosen")
    return found


def cell(count):
    """Instructions an operation, and the share of them that works on vectors."""
    if count is None:
        return "– |"
    return f"{count[0] / count[2]:.3g}{' *' if count[3] else ''} | {100 * count[1] / count[0]:.0f} %"


def main(counter, x86, arm, root):
    with ThreadPoolExecutor() as both:
        avx2 = both.submit(counts, ["qemu-x86_64", "-cpu", "max", "-plugin", counter, x86], "avx2")
        neon = both.submit(counts, ["qemu-aarch64", "-L", root, "-plugin", counter, arm], "neon")
    avx2, neon = avx2.result(), neon.result()
    print("| implementation, pass | AVX2 | on vectors | NEON | on vectors | NEON / AVX2 |\n|---|---|---|---|---|---|")
    seen = set()
    for problem in PROBLEMS:
        dtype = problem.partition("dtype=")[2] or "f32"
        rows = []
        for key in sorted((key for key in dict.fromkeys([*avx2, *neon]) if key[0] == problem), key=lambda key: key[1]):
            one, other = avx2.get(key), neon.get(key)
            # What one of the two chooses here, once an element type.
            if not (one and one[3] or other and other[3]) or (key[1:], dtype) in seen:
                continue
            seen.add((key[1:], dtype))
            ratio = f"{other[0] / one[0]:.2f}" if one and other else ""
            rows.append(f"| `{key[2]}`, {key[1]} | {cell(one)} | {cell(other)} | {ratio} |")
        if rows:
            print(f"| **{problem}** | | | | | |", *rows, sep="\n")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
