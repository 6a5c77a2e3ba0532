# SPDX-License-Identifier: Apache-2.0
"""The measured parts of docs/performance.md and docs/performance_rows.md: Markdown tables."""
import statistics

import alike
from results import FAMILIES, UNSTABLE, geometric_mean

GRADIENTS = (("i", "gradInput"), ("w", "gradWeight"), ("all", "all three"))
SIXTEEN_BIT_LIMIT = 1.15


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def milliseconds(ms):
    return f"{ms:.4f}" if ms < 0.1 else f"{ms:.3f}" if ms < 10 else f"{ms:.1f}"


def times(ratio):
    return "–" if ratio is None else f"{ratio:.2f} ×" if ratio < 10 else f"{ratio:.0f} ×"


def doubtful(row, text):
    """Marks a figure of a row whose passes disagreed."""
    return text + " ?" if row.unstable else text


def ratios(rows):
    return [row.ratio for row in rows if row and row.ratio]


def summary(part):
    """A line a family: geometric mean and worst ratio, median per cent of the roofline."""
    lines = []
    for family in (*FAMILIES, None):
        rows = [row for row in part.rows if family in (None, row.family)]
        if not rows:
            continue
        cells = [family or "**every row**", str(len({row.name for row in rows}))]
        for gradient, _ in GRADIENTS:
            found = [row for row in rows if row.gradient == gradient]
            values = ratios(found)
            cells.append(f"{times(geometric_mean(values))} ({times(min(values))})" if values else "–")
            cells.append(f"{statistics.median(row.roofline for row in found):.0f} %" if found else "–")
        lines.append(cells)
    header = ["family", "rows"]
    for _, name in GRADIENTS:
        header += [f"{name}: × best peer (worst)", "roofline"]
    return table(header, lines)


def every_row(part):
    lines, family = [], None
    for name in part.names():
        rows = [part.of(name, gradient) for gradient, _ in GRADIENTS]
        first = next(row for row in rows if row)
        if first.family == "average pooling":
            continue
        if first.family != family:
            family = first.family
            lines.append([f"**{family}**"] + [""] * 9)
        cells = [f"`{name}`"]
        for row in rows:
            cells += [milliseconds(row.ms), f"{row.roofline:.0f} %", doubtful(row, times(row.ratio))] if row else ["–"] * 3
        lines.append(cells)
    header = ["row"]
    for _, name in GRADIENTS:
        header += [f"{name} ms", "roofline", "× peer"]
    return table(header, lines)


def pooling(part):
    rows = [row for row in part.rows if row.family == "average pooling"]
    return table(
        ["row", "ms", "GB/s", "of the copy bandwidth", "of", "best peer ms", "× peer"],
        [[f"`{row.name}`", milliseconds(row.ms), f"{row.gbs:.1f}", f"{row.copy:.0f} %", row.level,
          milliseconds(row.peer_ms) if row.peer_ms else "–", doubtful(row, times(row.ratio))] for row in rows])


def winograd(part, exact):
    lines = []
    for row in part.rows:
        same = exact.of(*row.key) if exact else None
        lines.append([f"`{row.name}`", dict(GRADIENTS)[row.gradient], milliseconds(row.ms),
                      milliseconds(same.ms) if same else "–", milliseconds(row.peer_ms) if row.peer_ms else "–",
                      doubtful(row, times(row.ratio)), f"{row.peak:.0f} %"])
    return table(["row", "gradient", "ms", "exact mode ms", "best peer ms", "× peer",
                  "operations of the definition, of the peak"], lines)


def sixteen_bit(part, exact):
    """Time of the 16-bit type over our own FP32: a line a family, and the rows beyond the limit."""
    pairs = [(row, row.ms / exact.of(*row.key).ms) for row in part.rows if exact.of(*row.key)]
    lines = []
    for family in FAMILIES:
        values = [(ratio, row) for row, ratio in pairs if row.family == family]
        if values:
            worst, row = max(values, key=lambda pair: pair[0])
            lines.append([family, times(geometric_mean(ratio for ratio, _ in values)),
                          f"{times(worst)} (`{row.name}` {row.gradient})",
                          f"{sum(ratio > SIXTEEN_BIT_LIMIT for ratio, _ in values)} of {len(values)}"])
    return table(["family", "time over FP32", "worst", f"beyond {SIXTEEN_BIT_LIMIT} ×"], lines)


def alike_problems(found):
    lines = [[f"`{row}`", dict(GRADIENTS)[gradient], *(times(values.get(variant)) for variant in alike.LIMITS)]
             for row, gradient, values in found]
    return table(["row", "gradient", *alike.LIMITS], lines)


def machine(part):
    facts = part.facts
    peers = "; ".join(f"{peer['name']} {peer['version']}" for peer in facts["peers"])
    sizes = [f"{name} {size // 1024} KiB" for name, size in facts["cache_bytes"].items()]
    return (f"Machine: {facts['processor']}, {facts['instruction_set']}, {facts['threads']} threads, "
            f"{', '.join(sizes)}. Retrograd {facts['version']}. Peers: {peers}. Medians of whole calls, everybody in turn, "
            f"the least of {facts.get('passes', 1)} passes; `?` marks a row whose passes were more than "
            f"{UNSTABLE} × apart ({sum(row.unstable for row in part.rows)} of {len(part.rows)}).")


def page(parts):
    """What stands between the markers of docs/performance.md; `parts` maps a part's name to its Part or None."""
    out = []
    for name, title in (("suite-2t", "Two threads"), ("suite-1t", "One thread")):
        if part := parts.get(name):
            out += [f"**{title}.** {machine(part)}", summary(part)]
    if parts.get("suite-2t"):
        out += ["![How many times longer the best peer takes](figures/ratio.svg)",
                "![Per cent of the roofline](figures/roofline.svg)"]
    return "\n\n".join(out)


def rows_page(parts):
    """The same of docs/performance_rows.md."""
    two = parts.get("suite-2t")
    out = []
    for name, title in (("suite-2t", "two threads"), ("suite-1t", "one thread")):
        if part := parts.get(name):
            out += [f"### Convolution, {title}", every_row(part)]
            if any(row.family == "average pooling" for row in part.rows):
                out += [f"### Average pooling, {title}", pooling(part)]
    for name, title in (("winograd-2t", "two threads"), ("winograd-1t", "one thread")):
        if parts.get(name):
            out += [f"### Winograd allowed (RETROGRAD_WINOGRAD=1, cubeMathType 1), {title}",
                    winograd(parts[name], parts.get(name.replace("winograd", "suite")))]
    for name, title in (("bf16-2t", "BF16"), ("f16-2t", "FLOAT16")):
        if parts.get(name) and two:
            out += [f"### {title} against our own FLOAT, two threads", sixteen_bit(parts[name], two)]
    if parts.get("alike"):
        out += ["### Alike problems, two threads",
                "How much longer an operation takes when the same sizes are dilated, transposed, or given with channels-last strides.",
                alike_problems(parts["alike"])]
    return "\n\n".join(out)
