# SPDX-License-Identifier: Apache-2.0
"""Writes measured figures into docs: the suite's rows into performance_rows.md, the rest into performance.md.

    report.py [against_pytorch.csv] [drawn.csv] [drawn_forward.csv]     of scripts/gpu
    report.py cpu_f32.csv cpu_bf16.csv …                                of retrograd sweep --peer … --csv, all in one table;
                                                                        cpu_forward….csv in one of their own
"""
import csv
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/report"))
from page import write_part  # noqa: E402
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


def summary(rows):
    """A line for each type."""
    def line(name, ratios):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        return [name, str(len(ratios)), f"{mean:.2f} ×", f"{min(ratios):.2f} ×", str(sum(ratio < 0.95 for ratio in ratios))]

    lines = []
    for kind, _, title in (*TYPES, (None, None, "**all**")):
        ratios = [types[name][1] for types in rows.values() for name in types if kind in (None, name)]
        lines += [line(title, ratios)] if ratios else []
    return table(["", "figures", "× PyTorch (geometric mean)", "least", "below 0.95 ×"], lines) + "\n\n![GPU](figures/gpu.svg)"


def every_row(rows):
    def cell(figures):
        return f"{figures[0]:.3f}, {figures[1]:.2f} ×, {figures[2]:.0f} %" if figures else "–"

    return table(["row"] + [title for _, _, title in TYPES],
                 [[name] + [cell(types.get(kind)) for kind, _, _ in TYPES] for name, types in rows.items()])


def picture(rows):
    lines = [(name, "pooling" if name.startswith("avg") else "convolution",
              [(colour, types[kind][1]) for kind, colour, _ in TYPES if colour and kind in types])
             for name, types in rows.items()]
    values = [value for _, _, bars in lines for _, value in bars]
    return chart("How many times longer PyTorch takes on the same GPU, all gradients, NCHW", lines,
                 Logarithmic(min(values), max(values)), lambda value: f"{value:.2f}" if value < 10 else f"{value:.0f}",
                 [(colour, title) for _, colour, title in TYPES if colour])


BUCKETS = ((0, 0.9), (0.9, 1.05), (1.05, 1.5), (1.5, 2), (2, 3), (3, 5), (5, math.inf))


def drawn_rows(path):
    """(family, type, our ms, ratio, problem) of a file of against_pytorch.py."""
    with open(path, encoding="utf-8") as file:
        return [(line["row"], line["type"], float(line["ours_ms"]), float(line["ratio"]), line["problem"].split(" | ")[0])
                for line in csv.DictReader(file)]


def swept_rows(path):
    """The same of a file of `retrograd sweep --csv`: what was chosen, where a peer was timed."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line["chosen"] == "1" and line["peer_us"]]
    rows = []
    for line in lines:
        dtype = (line["problem"] + " ").partition("dtype=")[2].partition(" ")[0] or "f32"
        ours, peer = float(line["measured_us"]), float(line["peer_us"])
        rows.append((line["family"], dtype, ours / 1000, peer / ours, line["problem"]))
    return rows


def drawn_markdown(rows):
    """How often which ratio, by family and by type, and the rows that are below 0.95."""
    kinds = [("all", lambda row: True)]
    kinds += [(name, lambda row, name=name: row[0] == name) for name in sorted({row[0] for row in rows})]
    kinds += [(name, lambda row, name=name: row[1] == name) for name in sorted({row[1] for row in rows})]

    def line(name, belongs):
        ratios = sorted(row[3] for row in rows if belongs(row))
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        counts = [sum(low <= ratio < high for ratio in ratios) for low, high in BUCKETS]
        return [name, str(len(ratios)), f"{mean:.2f}", f"{ratios[0]:.2f}", f"{ratios[len(ratios) // 20]:.2f}"] + [
            f"{100 * count / len(ratios):.0f} %" if count else "–" for count in counts]

    titles = [f"{low:g}–{high:g}" if high < math.inf else f"≥ {low:g}" for low, high in BUCKETS]
    titles[0] = f"< {BUCKETS[0][1]:g}"
    slow = sorted((row for row in rows if row[3] < 0.95), key=lambda row: row[3])
    body = table(["", "figures", "mean", "least", "5 %"] + titles, [line(*kind) for kind in kinds])
    worst = "\n".join(f"- {row[3]:.2f} ×, {row[2]:.3f} ms: `{row[4]}`" for row in slow)
    listed = f"<details><summary>Below 0.95 ×: {len(slow)}</summary>\n\n{worst}\n\n</details>" if slow else "None is below 0.95 ×."
    return f"{body}\n\n{listed}"


def main():
    page, rows_page = ROOT / "docs/performance.md", ROOT / "docs/performance_rows.md"
    swept = [path for path in sys.argv[1:] if pathlib.Path(path).name.startswith("cpu")]
    for name, forward in (("cpu-drawn", False), ("cpu-drawn-forward", True)):
        if rows := [row for path in swept if ("forward" in pathlib.Path(path).name) == forward for row in swept_rows(path)]:
            write_part(page, name, drawn_markdown(rows))
    for path in sys.argv[1:]:
        name = pathlib.Path(path).name
        if path in swept:
            continue
        if name.startswith("drawn"):
            write_part(page, "gpu-drawn-forward" if "forward" in name else "gpu-drawn", drawn_markdown(drawn_rows(path)))
            continue
        rows = read(path)
        write_part(page, "gpu", summary(rows))
        write_part(rows_page, "gpu", every_row(rows))
        (ROOT / "docs/figures").mkdir(exist_ok=True)
        (ROOT / "docs/figures/gpu.svg").write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
