# SPDX-License-Identifier: Apache-2.0
"""Measures both suites next to the peers and writes the tables of docs/performance.md and docs/performance_rows.md, and
the pictures. scripts/bench builds first and calls this."""
import argparse
import os
import pathlib
import sys
import time

import alike
import figures
import tables
from goals import goals
from measure import OutOfTime, Run, measure
from pictures import ratio_chart, roofline_chart
from results import load
from page import write_part

PARTS = ("suite", "winograd", "bf16", "f16", "alike")
# The interpreters that have PyTorch. scripts/bench makes the one of PyPI, and builds the oneDNN peer for the same choice.
PYTHONS = {"pypi": os.environ.get("RETROGRAD_PEERS_VENV", "build/peers") + "/bin/python", "debian": "/usr/bin/python3"}


def options():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)} (default: all of them), or sweep: "
                        "drawn problems and suites next to the peers in every setting, written to sweep.csv in the results folder")
    parser.add_argument("--peers", default="pypi", choices=PYTHONS,
                        help="PyTorch and oneDNN of today from PyPI, or Debian's packages (default: pypi)")
    parser.add_argument("--threads", default="2,1", help="numbers of threads, the first one's 16-bit types too")
    parser.add_argument("--seconds", type=float, default=0.15, help="a row and pass, for us and for each peer")
    parser.add_argument("--repeat", type=int, default=2, help="passes over each slice of rows; the least medians count")
    parser.add_argument("--resume", action="store_true", help="keep what the results folder holds, measure the rest")
    parser.add_argument("--stop-after", type=float, default=float("inf"), metavar="S",
                        help="begin nothing after that many seconds; exit status 75 when something is left")
    sweep = parser.add_argument_group("the part sweep")
    sweep.add_argument("--seeds", default="1", help="of the drawn problems; each draws --count of them")
    sweep.add_argument("--count", type=int, default=300, help="drawn problems of a seed and setting (default: 300)")
    sweep.add_argument("--settings", default="", metavar="REGEX", help="only settings whose name matches")
    parser.add_argument("--report-only", action="store_true", help="measure nothing, write from the results folder")
    parser.add_argument("--results", type=pathlib.Path, default=root / "build/bench", help="folder of the JSON files")
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release", help="build folder")
    parser.add_argument("--docs", type=pathlib.Path, default=root / "docs", help="folder of the pages")
    return root, parser.parse_args()


def write(results, docs):
    """Everything the results folder allows. The goals go to the results folder and the terminal, not into the page."""
    names = [f"{part}-{threads}t" for threads in (2, 1) for part in PARTS if part != "alike"]
    parts = {name: load(results, name) for name in names}
    parts["alike"] = alike.figures(results / "alike-2t")
    if not any(parts.values()):
        sys.exit(f"scripts/bench: {results} holds no results; measure first")
    for name, text in (("performance.md", tables.page(parts)), ("performance_rows.md", tables.rows_page(parts))):
        write_part(docs / name, "measured", text)
    figures = docs / "figures"
    figures.mkdir(exist_ok=True)
    if parts["suite-2t"]:
        for name, chart in (("ratio", ratio_chart), ("roofline", roofline_chart)):
            if picture := chart(parts["suite-2t"]):
                (figures / f"{name}.svg").write_text(picture, encoding="utf-8")
    text = goals(parts)
    (results / "goals.md").write_text(text + "\n", encoding="utf-8")
    print(text)


def main():
    root, chosen = options()
    left = False
    parts, threads = chosen.parts.split(","), [int(count) for count in chosen.threads.split(",")]
    if unknown := set(parts) - {*PARTS, "sweep"}:
        sys.exit(f"scripts/bench: --parts: {', '.join(sorted(unknown))} is not one of {', '.join(PARTS)}, sweep")
    if not chosen.report_only:
        python = str(root / PYTHONS[chosen.peers])
        run = Run(root, chosen.build, python, chosen.results, chosen.rows, chosen.seconds, chosen.repeat, chosen.resume,
                  time.monotonic() + chosen.stop_after)
        try:
            measure(run, parts, threads)
            if "sweep" in parts:
                seeds = [int(seed) for seed in chosen.seeds.split(",")]
                figures.measure(run, max(threads), seeds, chosen.count, chosen.settings)
        except OutOfTime:
            left = True
    if left:
        sys.exit(75)
    if "sweep" in parts:
        figures.report(chosen.results)
    if parts != ["sweep"]:
        write(chosen.results, chosen.docs)


if __name__ == "__main__":
    main()
