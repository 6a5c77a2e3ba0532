# SPDX-License-Identifier: Apache-2.0
"""Runs `retrograd bench` over the suites, a few rows at a time, and keeps what each run wrote.

A part is one kind of run with a number of threads; its folder holds a file for every slice of rows, so that a run
that was stopped goes on where it was, and a part of the rows can be measured again.
"""
import csv
import dataclasses
import json
import os
import pathlib
import re
import shlex
import subprocess
import time

import alike

SLICE = 8  # rows of a suite a run: some seconds of starting peers for about 20 seconds of measuring


@dataclasses.dataclass(frozen=True)
class Run:
    """What the parts have in common."""
    root: pathlib.Path
    build: pathlib.Path
    python: str  # that has PyTorch
    results: pathlib.Path
    rows: str
    seconds: float
    repeat: int
    resume: bool
    deadline: float  # by time.monotonic()

    def peers(self):
        """Commands, each a line for a shell."""
        return [shlex.join([str(self.build / "bench/peers/retrograd-peer-onednn")]),
                shlex.join([self.python, str(self.root / "bench/peers/pytorch_peer.py")])]


def suite_rows(root, suite, rows):
    with open(root / f"bench/shapes/{suite}.csv", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if re.search(rows, row["name"])]


def is_winograd_row(row):
    """Dense 3×3 of stride 1, 64 channels and 14 positions an axis or more: where Winograd may be used with RETROGRAD_WINOGRAD=1."""
    return (row["kernel"], row["stride"], row["dilation"], row["groups"], row["transposed"]) == (
        "3x3", "1x1", "1x1", "1", "0") and min(int(row["Cin"]), int(row["Cout"])) >= 64 and min(
            int(size) for size in row["spatial_in"].split("x")) >= 14


class OutOfTime(Exception):
    """The deadline is past; --resume goes on."""


def merge(passes):
    """One content of several runs of the same rows. What disturbs a machine only slows it down, so that everybody's
    least median counts, ours and each peer's alike; `spread` keeps how far the passes were apart at most."""
    merged = dict(passes[0])
    by_key = {}
    for content in passes:
        for fields in content["rows"]:
            by_key.setdefault((fields["problem"], fields["pass"]), []).append(fields)
    merged["passes"] = len(passes)
    merged["rows"] = [merge_row(rows) for rows in by_key.values()]
    return merged


def merge_row(rows):
    best = dict(min(rows, key=lambda fields: fields["ms"]))
    best["spread"] = max(fields["ms"] for fields in rows) / best["ms"]
    best["peers"] = []
    for peers in zip(*(fields["peers"] for fields in rows)):
        timed = [peer for peer in peers if "ms" in peer]
        fastest = min(timed, key=lambda peer: peer["ms"]) if timed else peers[0]
        best["peers"].append(dict(fastest))
        if timed:
            best["peers"][-1]["spread"] = max(peer["ms"] for peer in timed) / fastest["ms"]
    return best


def environment(part):
    """Winograd is an option: its part sets it, the others leave the exact mode alone."""
    return {**os.environ, "RETROGRAD_WINOGRAD": "1" if part == "winograd" else "0"}


def call(run, part, threads, name, arguments, peers):
    """One slice, as often as asked for; its JSON in the part's folder."""
    folder = run.results / f"{part}-{threads}t"
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"{name}.json"
    if run.resume and final.exists():
        return
    if time.monotonic() > run.deadline:
        raise OutOfTime
    partial = folder / f"{name}.partial"
    command = [str(run.build / "tools/retrograd"), "bench", *arguments, "--threads", str(threads),
               "--seconds", str(run.seconds), "--json", str(partial)]
    for peer in run.peers() if peers else ():
        command += ["--peer", peer]
    passes = []
    for _ in range(run.repeat):
        subprocess.run(command, check=True, env=environment(part))
        passes.append(json.loads(partial.read_text(encoding="utf-8")))
    partial.write_text(json.dumps(merge(passes), indent=1), encoding="utf-8")
    partial.rename(final)


def measure_rows(run, part, threads, suite, names, options, peers):
    name = f"{suite}-{names[0]}" + (f"-{len(names)}" if len(names) > 1 else "")
    arguments = ["--shapes", str(run.root / f"bench/shapes/{suite}.csv"),
                 "--rows", "^(" + "|".join(map(re.escape, names)) + ")$", *options]
    call(run, part, threads, name, arguments, peers)


def measure_suites(run, part, threads, passes, options, peers):
    for suite, of_suite in (("conv", passes), ("avgpool", "all")):
        names = [row["name"] for row in suite_rows(run.root, suite, run.rows)]
        for first in range(0, len(names), SLICE):
            measure_rows(run, part, threads, suite, names[first:first + SLICE], ["--passes", of_suite, *options], peers)


def measure_winograd(run, threads):
    names = [row["name"] for row in suite_rows(run.root, "conv", run.rows) if is_winograd_row(row)]
    if names:
        measure_rows(run, "winograd", threads, "conv", names, ["--passes", "i,w", "--math", "1"], True)


def measure_alike(run, threads):
    for row in suite_rows(run.root, "conv", run.rows):
        if row["name"] in alike.ROWS:
            found = alike.problems(row)
            call(run, "alike", threads, "~".join([row["name"], *found]), [*found.values(), "--passes", "i,w"], False)


def measure(run, parts, threads):
    """Every part with every number of threads; the 16-bit types and alike problems run without peers, next to our own
    FP32, and with the most threads only."""
    for count in threads:
        if "suite" in parts:
            measure_suites(run, "suite", count, "i,w,all", [], True)
        if "winograd" in parts:
            measure_winograd(run, count)
        for dtype in ("bf16", "f16"):
            if dtype in parts and count == max(threads):
                measure_suites(run, dtype, count, "i,w", ["--dtype", dtype], False)
        if "alike" in parts and count == max(threads):
            measure_alike(run, count)
