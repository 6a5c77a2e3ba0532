#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which engine takes which pass of the suites, for vectors of 16, 8, 4 floats and one, against selection.golden, and
for GPUs, which need not be here, against selection_gpu.golden. 16b: vectors of 16, and products of bf16. h200-cudnn:
an H200 without cuDNN.

check_selection.py TABLE GOLDEN SUITE…            compare; every difference is a line
check_selection.py --update TABLE GOLDEN SUITE…   write GOLDEN anew: on a machine that has all the instruction sets
check_selection.py --gpus TABLE GOLDEN SUITE…     the same two for GPUs, on any machine
check_selection.py --update-gpus TABLE GOLDEN SUITE…
check_selection.py --no-reference[=PASS] TABLE SUITE…   no pass of any row but PASS, in any type, is left to the reference
check_selection.py --self-test                    the comparison finds what it must
"""
import os
import runpy
import subprocess
import sys
import tempfile

ISAS = {"avx512_bf16": "16b", "avx512": "16", "avx2": "8", "sse4": "4", "baseline": "1"}
GPUS = ["h200", "h200-cudnn", "a100", "rtx4090"]
MACHINES = [*ISAS.values(), *GPUS]
GOLDEN_MODES = ["f32", "f32/math=1", "f16", "bf16", "f32/last", "f16/last", "bf16/last"]
HEADER = """# problem x machine -> engines: what is planned for each row of bench/shapes, by the floats in a vector (b: and bf16)
# or by the GPU (-cudnn: without it; last: channels last).
# "ninja -C build/dev update_selection" writes this file; look at the difference before you commit it.
"""


def tables(program, suites):
    """{lanes: {(row, mode): "pass:engine …"}} for the instruction sets that this machine has."""
    found = {}
    for isa, lanes in ISAS.items():
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RETROGRAD_")}
        environment["RETROGRAD_CPU_ISA"] = isa
        run = subprocess.run([program, *suites], env=environment, capture_output=True, text=True, timeout=300)
        if run.returncode != 0:
            sys.exit(f"{isa}: {run.stderr}")
        first, *lines = run.stdout.splitlines()
        has = first.split()[-1]
        if has != lanes and not (isa == "baseline" and has in ("2", "4")):
            print(f"not checked: this machine has no {isa} ({first})")
            continue
        found[lanes] = {tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2] for line in lines}
    return found


def as_table(path, folder):
    """bench/gpu/suite.py as a table of shapes."""
    suite = runpy.run_path(path)["SUITE"]
    times = lambda sizes: "x".join(map(str, sizes))
    table = os.path.join(folder, "gpu.csv")
    with open(table, "w", encoding="utf-8") as file:
        file.write("name,ndim,N,Cin,Cout,groups,spatial_in,kernel,stride,pad,dilation,transposed\n")
        for name, ndim, n, cin, cout, groups, spatial, kernel, stride, pad, dilation, transposed in suite:
            each = ",".join(times([size] * ndim) for size in (stride, pad, dilation))
            file.write(f"gpu_{name},{ndim},{n},{cin},{cout},{groups},{times(spatial)},{times(kernel)},{each},{int(transposed)}\n")
    return table


def gpu_tables(program, suites):
    """The same for GPUs of the table of machines."""
    with tempfile.TemporaryDirectory() as folder:
        return gpu_tables_of(program, [as_table(suite, folder) if suite.endswith(".py") else suite for suite in suites])


def gpu_tables_of(program, suites):
    found = {}
    for gpu in GPUS:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RETROGRAD_")}
        run = subprocess.run([program, "--gpu", gpu, *suites], env=environment, capture_output=True, text=True, timeout=300)
        if run.returncode != 0:
            sys.exit(f"{gpu}: {run.stderr}")
        found[gpu] = {tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2] for line in run.stdout.splitlines()}
    return found


def flat(found):
    return {(row, mode, machine): engines for machine, table in found.items() for (row, mode), engines in table.items()
            if mode in GOLDEN_MODES and (machine in GPUS or mode != "f16")}


def to_text(choices):
    """A line for each choice of a row, with all the vector widths and modes that share it."""
    lines, rows = [HEADER], list(dict.fromkeys(row for row, _, _ in choices))
    for row in rows:
        lines.append(f"\n{row}\n")
        by_lanes = {}
        for lanes in MACHINES:
            modes = {}
            for mode in GOLDEN_MODES:
                if (row, mode, lanes) in choices:
                    modes.setdefault(choices[row, mode, lanes], []).append(mode)
            key = tuple((" ".join(same), engines) for engines, same in modes.items())
            if key:
                by_lanes.setdefault(key, []).append(lanes)
        for key, widths in by_lanes.items():
            for modes, engines in key:
                lines.append(f"  {' '.join(widths)} | {modes} | {engines}\n")
    return "".join(lines)


def from_text(text):
    choices, row = {}, None
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            row = line
            continue
        widths, modes, engines = (part.strip() for part in line.split("|"))
        for lanes in widths.split():
            for mode in modes.split():
                choices[row, mode, lanes] = engines
    return choices


def compare(golden, now):
    widths = {lanes for _, _, lanes in now}
    golden = {key: engines for key, engines in golden.items() if key[2] in widths}
    differences = []
    for key in dict.fromkeys([*golden, *now]):
        before, after = golden.get(key, "no such row").split(), now.get(key, "no such row").split()
        if before != after:
            changed = [f"{b} -> {a}" for b, a in zip(before, after) if a != b] if len(before) == len(after) else \
                [" ".join(before) + " -> " + " ".join(after)]
            where = key[2] if key[2] in GPUS else f"vectors of {key[2]}"
            differences.append(f"{key[0]}, {key[1]}, {where}: {'; '.join(changed)}")
    return differences


def falls_to_reference(engines, forgiven):
    return any(each.endswith(":reference") and each != forgiven + ":reference" for each in engines.split())


def self_test():
    assert falls_to_reference("grad_input:x grad_bias:reference", "")
    assert not falls_to_reference("grad_input:x grad_bias:reference", "grad_bias")
    assert falls_to_reference("grad_input:reference grad_bias:reference", "grad_bias")
    one = {("a", mode, machine): "grad_input:x grad_bias:y" for mode in GOLDEN_MODES for machine in MACHINES}
    other = {**one, ("a", "bf16", "8"): "grad_input:x grad_bias:z", ("b", "f32", "4"): "avgpool:p"}
    assert from_text(to_text(one)) == one and from_text(to_text(other)) == other
    assert compare(one, one) == [] and compare(other, {k: v for k, v in other.items() if k[2] == "16"}) == []
    assert compare(one, other) == ["a, bf16, vectors of 8: grad_bias:y -> grad_bias:z",
                                   "b, f32, vectors of 4: no such row -> avgpool:p"]
    gpu = {**one, ("a", "f16/last", "h200"): "grad_input:z grad_bias:y"}
    assert from_text(to_text(gpu)) == gpu
    assert compare(one, gpu) == ["a, f16/last, h200: grad_input:x -> grad_input:z"]
    assert compare(other, one)[1] == "b, f32, vectors of 4: avgpool:p -> no such row"
    return 0


def main():
    arguments = sys.argv[1:]
    option = arguments.pop(0) if arguments[0].startswith("--") else ""
    if option == "--self-test":
        return self_test()
    program = arguments.pop(0)
    if option.startswith("--no-reference"):
        forgiven = option.partition("=")[2]
        falls = [f"{row}, {mode}, vectors of {lanes}: {engines}" for lanes, table in tables(program, arguments).items()
                 for (row, mode), engines in table.items() if falls_to_reference(engines, forgiven)]
        print("\n".join(falls) or "every pass of the suites has an engine of its own")
        return 1 if falls else 0
    golden_path, *suites = arguments
    gpus = option.endswith("gpus")
    now = flat((gpu_tables if gpus else tables)(program, suites))
    if option.startswith("--update"):
        if not gpus and {lanes for _, _, lanes in now} != set(ISAS.values()):
            sys.exit("this machine has not all the instruction sets: the file would lose the others")
        with open(golden_path, "w", encoding="utf-8") as file:
            file.write(to_text(now))
        print(f"wrote {golden_path}")
        return 0
    with open(golden_path, encoding="utf-8") as file:
        differences = compare(from_text(file.read()), now)
    if differences:
        print("\n".join(differences))
        print(f"{len(differences)} choices differ from {golden_path}; if they should: ninja update_selection")
        return 1
    print(f"{len(now)} choices are as in {golden_path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
