#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which engine takes which pass of the suites on every CPU that has a name, against selection.golden.

check_selection.py TABLE GOLDEN SUITE…            compare; every difference is a line
check_selection.py --update TABLE GOLDEN SUITE…   write GOLDEN anew, on any machine
check_selection.py --gpus TABLE GOLDEN SUITE…     the same two for GPUs; a suite may be bench/gpu/suite.py
check_selection.py --update-gpus TABLE GOLDEN SUITE…
check_selection.py --limits TABLE SUITE…          a process limited to an instruction set plans as for a machine with its vectors
check_selection.py --no-reference[=PASS] TABLE SUITE…   no pass of any row but PASS, in any type, is left to the reference
check_selection.py --self-test                    the comparison finds what it must
"""
import os
import runpy
import subprocess
import sys
import tempfile

LIMITS = ["avx2", "sse4", "baseline"]
GOLDEN_MODES = ["f32", "f32/math=1", "f32/math=1/winograd=1", "bf16"]
GPU_MODES = ["f32", "f16", "bf16", "f32/last", "f16/last", "bf16/last"]
HEADER = """# problem x machine -> engines: what is planned for each row of the suites on every machine that base/machine.cpp names.
# "ninja -C build/dev update_selection" writes this file; look at the difference before you commit it.
"""


def run_table(program, *arguments, isa=""):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RETROGRAD_")}
    environment["RETROGRAD_CPU_ISA"] = isa
    run = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, timeout=300)
    return run.returncode, run.stdout, run.stderr


def parse(text):
    """{machine: {(row, mode): "pass:engine …"}}"""
    found, table = {}, None
    for line in text.splitlines():
        row, mode, *engines = line.split(" ", 2)
        if not engines:
            table = found.setdefault(mode, {})
        else:
            table[row, mode] = engines[0]
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


def tables(program, suites, *options):
    with tempfile.TemporaryDirectory() as folder:
        files = [as_table(suite, folder) if suite.endswith(".py") else suite for suite in suites]
        code, out, error = run_table(program, *options, *files)
    if code != 0:
        sys.exit(error)
    return parse(out)


def check_limits(program, suites):
    """Where this machine has more than the limit; elsewhere there is nothing to leave out."""
    differences, checked = [], 0
    for isa in LIMITS:
        code, by_hand, error = run_table(program, "--here=" + isa, *suites)
        if code != 0:
            print(f"not checked: {isa}: {error.strip()}")
            continue
        code, limited, error = run_table(program, "--here", *suites, isa=isa)
        if code != 0:
            sys.exit(f"{isa}: {error}")
        one, other = ({(*key, isa): value for table in parse(text).values() for key, value in table.items()}
                      for text in (by_hand, limited))
        differences += compare(one, other)
        checked += len(one)
    print("\n".join(differences) or f"{checked} choices are the same")
    return 1 if differences else 0


def flat(found, modes):
    return {(row, mode, machine): engines for machine, table in found.items() for (row, mode), engines in table.items()
            if mode in modes}


def to_text(choices):
    """A line for each choice of a row, with all the machines and modes that share it."""
    lines, rows = [HEADER], list(dict.fromkeys(row for row, _, _ in choices))
    machines = list(dict.fromkeys(machine for _, _, machine in choices))
    for row in rows:
        lines.append(f"\n{row}\n")
        alike = {}
        for machine in machines:
            modes = {}
            for mode in dict.fromkeys([*GOLDEN_MODES, *GPU_MODES]):
                if (row, mode, machine) in choices:
                    modes.setdefault(choices[row, mode, machine], []).append(mode)
            key = tuple((" ".join(same), engines) for engines, same in modes.items())
            if key:
                alike.setdefault(key, []).append(machine)
        for key, names in alike.items():
            for modes, engines in key:
                lines.append(f"  {' '.join(names)} | {modes} | {engines}\n")
    return "".join(lines)


def from_text(text):
    choices, row = {}, None
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            row = line
            continue
        machines, modes, engines = (part.strip() for part in line.split("|"))
        for machine in machines.split():
            for mode in modes.split():
                choices[row, mode, machine] = engines
    return choices


def compare(golden, now):
    differences = []
    for key in dict.fromkeys([*golden, *now]):
        before, after = golden.get(key, "no such row").split(), now.get(key, "no such row").split()
        if before != after:
            changed = [f"{b} -> {a}" for b, a in zip(before, after) if a != b] if len(before) == len(after) else \
                [" ".join(before) + " -> " + " ".join(after)]
            differences.append(f"{key[0]}, {key[1]}, {key[2]}: {'; '.join(changed)}")
    return differences


def falls_to_reference(engines, forgiven):
    return any(each.endswith(":reference") and each != forgiven + ":reference" for each in engines.split())


def self_test():
    assert falls_to_reference("grad_input:x grad_bias:reference", "")
    assert not falls_to_reference("grad_input:x grad_bias:reference", "grad_bias")
    assert falls_to_reference("grad_input:reference grad_bias:reference", "grad_bias")
    one = {("a", mode, machine): "grad_input:x grad_bias:y" for mode in GOLDEN_MODES for machine in ("x", "y", "z")}
    other = {**one, ("a", "bf16", "y"): "grad_input:x grad_bias:z", ("b", "f32", "z"): "avgpool:p"}
    assert from_text(to_text(one)) == one and from_text(to_text(other)) == other
    assert compare(one, one) == [] and compare(other, other) == []
    assert compare(one, other) == ["a, bf16, y: grad_bias:y -> grad_bias:z",
                                   "b, f32, z: no such row -> avgpool:p"]
    assert compare(other, one)[1] == "b, f32, z: avgpool:p -> no such row"
    assert parse("machine m\na f32 grad_input:x grad_bias:y\n") == {"m": {("a", "f32"): "grad_input:x grad_bias:y"}}
    return 0


def main():
    arguments = sys.argv[1:]
    option = arguments.pop(0) if arguments[0].startswith("--") else ""
    if option == "--self-test":
        return self_test()
    program = arguments.pop(0)
    if option.startswith("--no-reference"):
        forgiven = option.partition("=")[2]
        falls = [f"{row}, {mode}, {machine}: {engines}" for machine, table in tables(program, arguments).items()
                 for (row, mode), engines in table.items() if falls_to_reference(engines, forgiven)]
        print("\n".join(falls) or "every pass of the suites has an engine of its own")
        return 1 if falls else 0
    if option == "--limits":
        return check_limits(program, arguments)
    golden_path, *suites = arguments
    gpus = option.endswith("gpus")
    now = flat(tables(program, suites, "--gpus"), GPU_MODES) if gpus else flat(tables(program, suites), GOLDEN_MODES)
    if option.startswith("--update"):
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
