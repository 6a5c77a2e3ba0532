# SPDX-License-Identifier: Apache-2.0
"""Writes the table and the picture of a run of scripts/gpu into docs: report.py against_pytorch.csv"""
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


def main():
    rows = read(sys.argv[1])
    page = ROOT / "docs/performance.md"
    page.write_text(insert(page.read_text(encoding="utf-8"), "gpu", markdown(rows)), encoding="utf-8")
    (ROOT / "docs/figures").mkdir(exist_ok=True)
    (ROOT / "docs/figures/gpu.svg").write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
