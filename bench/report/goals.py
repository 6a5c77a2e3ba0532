# SPDX-License-Identifier: Apache-2.0
"""The figures aimed at, against what was measured: one line each, with the rows that miss."""

import alike
from results import geometric_mean
from tables import SIXTEEN_BIT_LIMIT, table, times

DENSE = ("dense 3×3", "dense 1×1", "dense, other kernels", "stride 2", "3-D", "dilated", "1-D", "transposed")
DEPTHWISE = ("depthwise", "depthwise 1-D and 3-D")


def percent(value):
    return f"{value:.0f} %"


# text, families (None: every one), gradients, figure of a row, least, how it is printed
LEAST = (
    ("× best peer", None, ("i", "w", "all"), lambda row: row.ratio, 0.95, times),
    ("gradInput of the peak", DENSE, ("i",), lambda row: row.peak, 80, percent),
    ("gradWeight of the peak", DENSE, ("w",), lambda row: row.peak, 72, percent),
    ("depthwise of the roofline", DEPTHWISE, ("i", "w"), lambda row: row.roofline, 45, percent),
    ("few channels a group, of the peak", ("few channels a group",), ("i", "w"), lambda row: row.peak, 55, percent),
    ("stems and patches, gradWeight of the peak", ("stems and patches",), ("w",), lambda row: row.peak, 60, percent),
    ("stems and patches, gradInput of the peak", ("stems and patches",), ("i",), lambda row: row.peak, 45, percent),
    ("big batch, tiny space, of the peak", ("big batch, tiny space",), ("i", "w"), lambda row: row.peak, 50, percent),
    ("average pooling, of the copy bandwidth", ("average pooling",), ("all",), lambda row: row.copy, 60, percent),
)


def line(text, wanted, figures, is_missed, show):
    """`figures` are (figure, row) pairs, the worst first. A row whose passes disagreed counts neither way."""
    sure = [pair for pair in figures if not pair[1].unstable]
    missed = [pair for pair in sure if is_missed(pair[0])]

    def names(pairs):
        return ", ".join(f"{row.name}.{row.gradient} {show(figure)}" for figure, row in pairs) or "–"

    return [text, wanted, f"{len(sure) - len(missed)} of {len(sure)}", names(missed),
            names(pair for pair in figures if pair[1].unstable)]


def suite_goals(part):
    lines = []
    values = [row.ratio for row in part.rows if row.gradient == "all" and row.ratio and row.family != "average pooling"]
    if values:
        mean = geometric_mean(values)
        lines.append(["geometric mean, all three gradients", "≥ 2.50 ×", times(mean), "–", "–"])
    for text, families, gradients, figure, least, show in LEAST:
        found = [(figure(row), row) for row in part.rows
                 if row.gradient in gradients and (families is None or row.family in families)]
        found = sorted(((value, row) for value, row in found if value is not None), key=lambda pair: pair[0])
        if found:
            lines.append(line(text, "≥ " + show(least), found, lambda value, least=least: value < least, show))
    return lines


def winograd_goals(part):
    found = sorted(((row.ratio, row) for row in part.rows if row.ratio), key=lambda pair: pair[0])
    return [line("Winograd, × best peer", "≥ 1.70 ×", found, lambda value: value < 1.7, times)]


def sixteen_bit_goals(part, exact):
    """Rows that FP32 computes at more than half of the peak count as compute-bound."""
    found = [(row.ms / exact.of(*row.key).ms, row) for row in part.rows
             if exact.of(*row.key) and exact.of(*row.key).peak > 50]
    found.sort(key=lambda pair: -pair[0])
    return [line("time over our own FP32, compute-bound rows", f"≤ {SIXTEEN_BIT_LIMIT} ×", found,
                 lambda value: value > SIXTEEN_BIT_LIMIT, times)]


def alike_goals(found):
    lines = []
    for variant, limit in alike.LIMITS.items():
        of_variant = sorted(((values[variant], f"{row}.{gradient}") for row, gradient, values in found
                             if variant in values), reverse=True)
        missed = ", ".join(f"{name} {times(value)}" for value, name in of_variant if value > limit)
        reached = sum(value <= limit for value, _ in of_variant)
        lines.append([f"time an operation takes, {variant}", f"≤ {limit} ×", f"{reached} of {len(of_variant)}", missed or "–", "–"])
    return lines


def goals(parts):
    out = []
    for name, part in parts.items():
        if not part:
            continue
        lines = []
        if name.startswith("suite"):
            lines = suite_goals(part)
        elif name.startswith("winograd"):
            lines = winograd_goals(part)
        elif name == "alike":
            lines = alike_goals(part)
        elif parts.get("suite-" + name.split("-")[1]):
            lines = sixteen_bit_goals(part, parts["suite-" + name.split("-")[1]])
        if lines:
            out.append(f"### {name}\n\n" + table(["figure", "aim", "reached", "rows that miss, worst first", "doubtful: passes disagree"], lines))
    return "\n\n".join(out)
