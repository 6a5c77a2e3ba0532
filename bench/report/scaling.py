#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a few problems with 1, 2, 4, … 1024 times the batch or the channels (`retrograd bench`), prints how far time is
from being in proportion, and draws it. Nothing else should run meanwhile.

    bench/report/scaling.py --threads 2                     # about two minutes; writes docs/figures/scaling.svg
    bench/report/scaling.py --csv build/scaling.csv         # keeps the rows; --from build/scaling.csv draws them again
"""
import argparse
import csv
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

from pictures import STYLE

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCALES = [2**power for power in range(11)]
JUDGED = 1e-4  # seconds: what starting a call takes is a small part of it

# Name, images N by 1 to 1024, x channels C in eights (of transposed convolutions the input's; groups of eight): the
# largest tensor has 100 MB, the longest call 8 GFLOP.
PROBLEMS = (
    ("dense 3 × 3", "conv input={N}x16x28x28 weight=16x16x3x3 padding=1x1",
     "conv input=1x{C}x28x28 weight=16x{C}x3x3 padding=1x1"),
    ("1 × 1", "conv input={N}x32x28x28 weight=32x32x1x1", "conv input=1x{C}x28x28 weight=32x{C}x1x1"),
    ("depthwise", "conv input={N}x32x28x28 weight=32x1x3x3 padding=1x1 groups=32",
     "conv input=1x{C}x28x28 weight={C}x1x3x3 padding=1x1 groups={C}"),
    ("groups of 8", "conv input={N}x32x28x28 weight=32x8x3x3 padding=1x1 groups=4",
     "conv input=1x{C}x28x28 weight={C}x8x3x3 padding=1x1 groups={G}"),
    ("transposed", "conv input={N}x16x14x14 weight=16x16x4x4 stride=2x2 padding=1x1 transposed=1",
     "conv input=1x{C}x14x14 weight={C}x16x4x4 stride=2x2 padding=1x1 transposed=1"),
    ("average pooling", "avgpool input={N}x16x28x28 kernel=3x3 stride=2x2 padding=1x1",
     "avgpool input=1x{C}x28x28 kernel=3x3 stride=2x2 padding=1x1"),
)
AXES = ("batch", "channels")

LEFT, WIDTH, HEIGHT, TOP, BETWEEN = 44, 330, 250, 74, 50
COLOURS = (("#0969da", "#58a6ff"), ("#bf5700", "#f0883e"), ("#1a7f37", "#56d364"), ("#7a4fd0", "#bc8cff"),
           ("#a40e26", "#ff7b72"), ("#59636e", "#9198a1"))


def problems():
    """(name, axis, scale, text) of every call."""
    for name, *texts in PROBLEMS:
        for axis, text in zip(AXES, texts):
            for scale in SCALES:
                yield name, axis, scale, text.format(N=scale, C=8 * scale, G=scale)


def measure(options):
    """Rows (name, axis, scale, seconds)."""
    calls = list(problems())
    with tempfile.NamedTemporaryFile(suffix=".csv") as written:
        subprocess.run([options.retrograd, "bench", "--threads", str(options.threads), "--seconds", str(options.seconds),
                        "--dtype", options.dtype, "--passes", "all", "--csv", written.name, *(call[3] for call in calls)],
                       check=True, stdout=subprocess.DEVNULL)
        with open(written.name, encoding="utf-8") as file:
            times = [float(row["ms"]) / 1e3 for row in csv.DictReader(file)]
    if len(times) != len(calls):
        sys.exit(f"retrograd bench wrote {len(times)} rows for {len(calls)} problems")
    return [(name, axis, scale, time) for (name, axis, scale, _), time in zip(calls, times)]


def series(rows):
    """{(axis, name): [(scale, seconds, relative)]}: the time for a unit of the scale, over its median in the series."""
    found = {}
    for name, axis, scale, seconds in rows:
        found.setdefault((axis, name), []).append((scale, seconds))
    return {key: [(scale, seconds, seconds / scale / statistics.median(t / s for s, t in points)) for scale, seconds in points]
            for key, points in found.items()}


def deviation(points):
    """The point that is farthest from 1, either way."""
    return max(points, key=lambda point: abs(math.log(point[2])))


def report(found):
    lines = []
    for (axis, name), points in found.items():
        judged = [point for point in points if point[1] >= JUDGED]
        def tell(points):
            scale, seconds, relative = deviation(points)
            return f"{relative:5.2f} at x {scale} ({seconds * 1e3:.3g} ms)"
        lines.append(f"{axis:<9} {name:<16} all {tell(points)}" + (f"; above 0.1 ms {tell(judged)}" if judged else ""))
    judged = [(*key, point) for key, points in found.items() for point in points if point[1] >= JUDGED]
    if judged:
        axis, name, (scale, _, relative) = max(judged, key=lambda entry: abs(math.log(entry[2][2])))
        lines.append(f"largest deviation above 0.1 ms: {relative:.2f}, {name}, {axis} x {scale}")
    return "\n".join(lines)


def picture(found, title):
    values = [point[2] for points in found.values() for point in points]
    low = min(-1, math.floor(math.log2(min(values))))
    high = max(1, math.ceil(math.log2(max(values))))
    width, bottom = LEFT + 2 * WIDTH + BETWEEN + 20, TOP + HEIGHT
    names = [name for name, *_ in PROBLEMS]
    style = STYLE + "".join(f"  .s{i} {{ stroke: {light}; fill: none; stroke-width: 1.5; }}\n"
                            for i, (light, _) in enumerate(COLOURS))
    style += "  @media (prefers-color-scheme: dark) {\n" + "".join(
        f"    .s{i} {{ stroke: {dark}; }}\n" for i, (_, dark) in enumerate(COLOURS)) + "  }\n"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 40}" width="{width}" height="{bottom + 40}" '
           f'role="img" aria-label="{escape(title)}">', f"<style>{style}</style>",
           f'<rect class="back" width="{width}" height="{bottom + 40}"/>',
           f'<text class="title" x="8" y="20">{escape(title)}</text>']
    for i, name in enumerate(names):
        x = LEFT + 110 * i
        out.append(f'<line class="s{i}" x1="{x}" x2="{x + 14}" y1="38" y2="38"/><text x="{x + 19}" y="42">{escape(name)}</text>')
    for panel, axis in enumerate(AXES):
        left = LEFT + panel * (WIDTH + BETWEEN)
        x_at = lambda scale: left + WIDTH * math.log2(scale) / math.log2(SCALES[-1])
        y_at = lambda value: bottom - HEIGHT * (math.log2(value) - low) / (high - low)
        for power in range(low, high + 1):
            y = y_at(2.0**power)
            out.append(f'<line class="{"base" if power == 0 else "grid"}" x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
                       f'<text class="faint" x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{2**power if power >= 0 else f"1/{2**-power}"}</text>')
        for scale in SCALES[::2]:
            out.append(f'<text class="faint" x="{x_at(scale):.1f}" y="{bottom + 15}" text-anchor="middle">{scale}</text>')
        out.append(f'<text x="{left + WIDTH / 2}" y="{bottom + 31}" text-anchor="middle">{axis} ×</text>')
        for i, name in enumerate(names):
            line = " ".join(f"{x_at(scale):.1f},{y_at(value):.1f}" for scale, _, value in found.get((axis, name), []))
            if line:
                out.append(f'<polyline class="s{i}" points="{line}"/>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retrograd", default=ROOT / "build/release/tools/retrograd", help="the program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.2, help="a call")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--csv", help="write the rows there")
    parser.add_argument("--from", dest="rows", help="rows of an earlier run instead of a new one")
    parser.add_argument("--out", default=ROOT / "docs/figures/scaling.svg")
    options = parser.parse_args()
    if options.rows:
        with open(options.rows, encoding="utf-8", newline="") as file:
            rows = [(row["name"], row["axis"], int(row["scale"]), float(row["seconds"])) for row in csv.DictReader(file)]
    else:
        rows = measure(options)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("name", "axis", "scale", "seconds"), *rows])
    found = series(rows)
    print(report(found))
    title = f"Time ÷ batch, time ÷ channels, relative: all gradients, {options.dtype}, {options.threads} threads"
    pathlib.Path(options.out).write_text(picture(found, title), encoding="utf-8")


if __name__ == "__main__":
    main()
