# SPDX-License-Identifier: Apache-2.0
"""Writes tables and the picture of a run of scripts/gpu into docs: report.py [against_pytorch.csv] [drawn.csv] [drawn_forward.csv]"""
import csv
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/report"))
from page import insert  # noqa: E402
from pictures import Logarithmic, chart  # noqa: E402
from tables import table  # noqa: E402

TYPES = (("fp32", "i", "FP32"), ("fp16", "w", "FP16"), ("bf16", "all", "BF16"), ("fp16-nhwc", None, "FP16 channels-last"))


def read(path):
    """{row: {type: (ms, ratio, per cent of copy)}} in the order of the file."""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in csv.DictReader(file):
            rows.setdefault(line["row"], {})[line["type"]] = tuple(
                float(line[key]) for key in ("ours_ms", "ratio", "percent_of_copy"))
    return rows


def markdown(rows):
    def cell(figures):
        return f"{figures[0]:.3f}, {figures[1]:.2f} ×, {figures[2]:.0f} %" if figures else "–"

    ratios = [figures[1] for types in rows.values() for figures in types.values()]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    below = sum(ratio < 0.95 for ratio in ratios)
    body = table(["row"] + [title for _, _, title in TYPES],
                 [[name] + [cell(types.get(kind)) for kind, _, _ in TYPES] for name, types in rows.items()])
    return (f"{len(ratios)} figures: milliseconds for all gradients, how many times longer PyTorch takes, share of the copy "
            f"bandwidth. Geometric mean {mean:.2f} ×; {below} below 0.95 ×.\n\n![GPU](figures/gpu.svg)\n\n{body}")


def picture(rows):
    lines = [(name, "pooling" if name.startswith("avg") else "convolution",
              [(colour, types[kind][1]) for kind, colour, _ in TYPES if colour and kind in types])
             for name, types in rows.items()]
    values = [value for _, _, bars in lines for _, value in bars]
    return chart("How many times longer PyTorch takes on the same GPU, all gradients, NCHW", lines,
                 Logarithmic(min(values), max(values)), lambda value: f"{value:.2f}" if value < 10 else f"{value:.0f}",
                 [(colour, title) for _, colour, title in TYPES if colour])


BUCKETS = ((0, 0.9), (0.9, 1.05), (1.05, 1.5), (1.5, 2), (2, 3), (3, 5), (5, math.inf))


def drawn_markdown(path):
    """How often which ratio, by family and by type, and the rows that are below 0.95."""
    with open(path, encoding="utf-8") as file:
        rows = [(line["row"], line["type"], float(line["ours_ms"]), float(line["torch_ms"]), float(line["ratio"]),
                 line["problem"].split(" | ")[0]) for line in csv.DictReader(file)]
    kinds = [("all", lambda row: True)]
    kinds += [(name, lambda row, name=name: row[0] == name) for name in sorted({row[0] for row in rows})]
    kinds += [(name, lambda row, name=name: row[1] == name) for name in sorted({row[1] for row in rows})]

    def line(name, belongs):
        ratios = sorted(row[4] for row in rows if belongs(row))
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        counts = [sum(low <= ratio < high for ratio in ratios) for low, high in BUCKETS]
        return [name, str(len(ratios)), f"{mean:.2f}", f"{ratios[0]:.2f}", f"{ratios[len(ratios) // 20]:.2f}"] + [
            f"{100 * count / len(ratios):.0f} %" if count else "–" for count in counts]

    titles = [f"{low:g}–{high:g}" if high < math.inf else f"≥ {low:g}" for low, high in BUCKETS]
    titles[0] = f"< {BUCKETS[0][1]:g}"
    slow = sorted((row for row in rows if row[4] < 0.95), key=lambda row: row[4])
    body = table(["", "figures", "mean", "least", "5 %"] + titles, [line(*kind) for kind in kinds])
    worst = "\n".join(f"- {row[4]:.2f} ×, {row[2]:.3f} ms: `{row[5]}`" for row in slow)
    return (f"{len(rows)} figures: how many times longer PyTorch takes; shares of the figures by that ratio.\n\n"
            f"{body}\n\nBelow 0.95 ×: {len(slow)}.\n\n{worst}" if slow else body)


def main():
    page = ROOT / "docs/performance.md"
    for path in sys.argv[1:]:
        if pathlib.Path(path).name.startswith("drawn"):
            name = "gpu-drawn-forward" if "forward" in path else "gpu-drawn"
            page.write_text(insert(page.read_text(encoding="utf-8"), name, drawn_markdown(path)), encoding="utf-8")
            continue
        rows = read(path)
        page.write_text(insert(page.read_text(encoding="utf-8"), "gpu", markdown(rows)), encoding="utf-8")
        (ROOT / "docs/figures").mkdir(exist_ok=True)
        (ROOT / "docs/figures/gpu.svg").write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
