# SPDX-License-Identifier: Apache-2.0
"""The CPU next to its peers in every setting: drawn problems (`retrograd sweep`) and the suites (`retrograd bench`), by type,
layout and instruction set. One line a setting on the terminal, every row in sweep.csv of the results folder."""
import csv
import dataclasses
import json
import os
import re
import subprocess
import sys
import time

from measure import OutOfTime, suite_rows
from results import geometric_mean

LEAST = 0.95  # times the fastest peer: rows below it are counted
WORST_SHOWN = 10
AVX2 = {"RETROGRAD_CPU_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
COLUMNS = ("setting", "source", "seed", "name", "pass", "us", "peer_us", "peer", "variant", "ratio", "problem")


@dataclasses.dataclass(frozen=True)
class Setting:
    name: str
    options: tuple  # of both programs
    environment: dict = dataclasses.field(default_factory=dict)
    drawn: tuple = ("--passes", "all")  # of sweep; None: no drawn problems
    suites: dict = dataclasses.field(default_factory=lambda: {"conv": "i,w,all"})  # and what of them is timed


def settings():
    plain = ("--layout", "plain")
    for dtype in ("f32", "bf16", "f16"):
        yield Setting(dtype, ("--dtype", dtype, *plain))
    yield Setting("f32-avx2", ("--dtype", "f32", *plain), AVX2)
    for dtype in ("f32", "bf16"):
        yield Setting(f"{dtype}-channels-last", ("--dtype", dtype, "--layout", "channels-last"), suites={"conv": "all"})
    yield Setting("f32-forward", ("--dtype", "f32", *plain), drawn=("--forward",), suites={})
    yield Setting("f32-pooling", ("--dtype", "f32", *plain), drawn=("--family", "pool", "--passes", "all"),
                  suites={"avgpool": "all"})


def run_one(run, threads, file, setting, command):
    """One run of the program; its JSON is there as a whole or not at all."""
    if run.resume and file.exists():
        return
    if time.monotonic() > run.deadline:
        raise OutOfTime
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    line = [str(run.build / "tools/retrograd"), *command, *setting.options, "--threads", str(threads), "--json", str(partial)]
    for peer in run.peers():
        line += ["--peer", peer]
    print(f"== {file.stem}", flush=True)
    environment = {**os.environ, "RETROGRAD_WINOGRAD": "0", **setting.environment}
    done = subprocess.run(line, env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode == 2 or not partial.exists():
        sys.exit(f"scripts/bench: {' '.join(line)} failed")
    if done.returncode != 0:  # it has said which problem or peer; the other rows stand
        print(f"scripts/bench: {file.stem} lacks rows", file=sys.stderr)
    partial.rename(file)


def measure(run, threads, seeds, count, wanted):
    folder = run.results / "sweep"
    for setting in settings():
        if not re.search(wanted, setting.name):
            continue
        for seed in seeds if setting.drawn is not None else ():
            run_one(run, threads, folder / f"{setting.name}~drawn~{seed}.json", setting,
                    ["sweep", "--seed", str(seed), "--count", str(count), "--seconds", str(run.seconds), *setting.drawn])
        for suite, passes in setting.suites.items():
            if not suite_rows(run.root, suite, run.rows):
                continue
            rows = ["--rows", run.rows] if run.rows else []
            run_one(run, threads, folder / f"{setting.name}~{suite}~.json", setting,
                    ["bench", "--shapes", str(run.root / f"bench/shapes/{suite}.csv"), *rows, "--passes", passes,
                     "--seconds", str(run.seconds)])


def fastest(peers, unit):
    timed = [peer for peer in peers if unit in peer]
    return min(timed, key=lambda peer: peer[unit], default=None)


def rows_of(file):
    """Rows of sweep.csv, of a sweep or of a bench; those that no peer took have no ratio."""
    setting, source, seed = file.stem.split("~")
    content = json.loads(file.read_text(encoding="utf-8"))
    for fields in content.get("figures", content.get("rows")):
        if source == "drawn":
            name, unit, scale = fields["family"], "us", 1
            ours = next(each["us"] for each in fields["implementations"] if each["name"] == fields["chosen"])
        else:
            name, unit, scale = fields["name"], "ms", 1000
            ours = fields["ms"] * scale
        peer = fastest(fields["peers"], unit)
        theirs = peer[unit] * scale if peer else None
        yield dict(zip(COLUMNS, (setting, source, seed, name, fields["pass"], ours, theirs, peer and peer["name"],
                                 peer and peer.get("variant"), theirs / ours if peer else None, fields["problem"])))


def versions_of(file):
    peers = json.loads(file.read_text(encoding="utf-8"))["peers"]
    return "; ".join(f"{peer['name']} {peer['version']}" for peer in peers)


def summary(rows):
    """Lines for the terminal: a table, then the worst rows of each setting."""
    groups = {}
    for row in rows:
        groups.setdefault((row["setting"], "drawn" if row["source"] == "drawn" else "suite"), []).append(row)
    lines = [f"{'setting':<20} {'rows':<6} {'compared':>8} {'geomean':>8} {'worst':>7} {f'< {LEAST}':>7}"]
    worst = []
    for (setting, source), found in groups.items():
        ratios = sorted((row["ratio"], row["pass"], row["problem"]) for row in found if row["ratio"])
        if not ratios:
            lines.append(f"{setting:<20} {source:<6} {0:>8}   no peer took any of {len(found)} rows")
            continue
        below = sum(ratio < LEAST for ratio, _, _ in ratios)
        lines.append(f"{setting:<20} {source:<6} {len(ratios):>8} {geometric_mean(r for r, _, _ in ratios):>8.2f} "
                     f"{ratios[0][0]:>7.2f} {below:>7}")
        worst += ["", f"worst of {setting}, {source}"]
        worst += [f"  {ratio:>7.3f}  {gradient:<12} \"{problem}\"" for ratio, gradient, problem in ratios[:WORST_SHOWN]]
    return lines + worst


def report(results):
    files = sorted((results / "sweep").glob("*.json"))
    if not files:
        sys.exit(f"scripts/bench: {results / 'sweep'} holds no results; measure first")
    rows = [row for file in files for row in rows_of(file)]
    with open(results / "sweep.csv", "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    text = "\n".join([*dict.fromkeys(map(versions_of, files)), *summary(rows)]) + "\n"
    (results / "sweep.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    print(f"every row: {results / 'sweep.csv'}")
