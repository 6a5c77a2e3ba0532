# SPDX-License-Identifier: Apache-2.0
"""Bar charts as SVG, written by hand: a row of the suites a line, a bar a gradient. The colours follow the reader's
light or dark scheme."""
import math
from xml.sax.saxutils import escape

LABELS, PLOT, VALUES = 210, 560, 110  # widths: row names, bars, room for the figures
BAR, GAP, FAMILY = 7, 5, 24           # heights: a bar, between rows, a family's title
TOP, BOTTOM = 66, 14

STYLE = """
  text { font: 11px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 15px; font-weight: 600; }
  .family { font-weight: 600; }
  .faint { fill: #59636e; }
  .back { fill: #ffffff; }
  .grid { stroke: #d1d9e0; }
  .base { stroke: #59636e; }
  .i { fill: #0969da; } .w { fill: #bf5700; } .all { fill: #7a4fd0; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .faint { fill: #9198a1; }
    .back { fill: #0d1117; }
    .grid { stroke: #3d444d; }
    .base { stroke: #9198a1; }
    .i { fill: #58a6ff; } .w { fill: #f0883e; } .all { fill: #bc8cff; }
  }
"""
LEGEND = (("i", "gradInput"), ("w", "gradWeight"), ("all", "average pooling"))


class Logarithmic:
    """Ratios; bars begin at 1."""

    def __init__(self, lowest, highest):
        self.low = min(-1, math.floor(math.log2(lowest)))
        self.high = max(1, math.ceil(math.log2(highest)))
        self.base = 1

    def at(self, value):
        return LABELS + PLOT * (math.log2(value) - self.low) / (self.high - self.low)

    def ticks(self):
        return [(2.0**power, f"{2**power} ×" if power >= 0 else f"1/{2**-power} ×")
                for power in range(self.low, self.high + 1)]


class Percent:
    base = 0

    @staticmethod
    def at(value):
        return LABELS + PLOT * min(value, 110) / 110

    @staticmethod
    def ticks():
        return [(value, f"{value} %") for value in range(0, 101, 20)]


def lines_of(part, value):
    """(name, family, [(gradient, value)…]) for every row that has a value."""
    for name in part.names():
        bars = [(gradient, value(part.of(name, gradient))) for gradient in ("i", "w") if part.of(name, gradient)]
        if not bars and part.of(name, "all"):
            bars = [("all", value(part.of(name, "all")))]
        bars = [bar for bar in bars if bar[1] is not None]
        if bars:
            family = next(row.family for row in part.rows if row.name == name)
            yield name, family, bars


def chart(title, lines, scale, label, legend=LEGEND):
    body, y, family = [], TOP, None
    for name, of_family, bars in lines:
        if of_family != family:
            family = of_family
            body.append(f'<text class="family" x="8" y="{y + FAMILY - 7}">{escape(family)}</text>')
            y += FAMILY
        body.append(f'<text x="{LABELS - 8}" y="{y + len(bars) * BAR / 2 + 4}" text-anchor="end">{escape(name)}</text>')
        base, end = scale.at(scale.base), 0
        for index, (gradient, value) in enumerate(bars):
            x = scale.at(value)
            end = max(end, x, base)
            body.append(f'<rect class="{gradient}" x="{min(x, base):.1f}" y="{y + index * BAR}" '
                        f'width="{max(abs(x - base), 1):.1f}" height="{BAR - 1}"/>')
        figures = " · ".join(label(value) for _, value in bars)
        body.append(f'<text class="faint" x="{end + 5:.1f}" y="{y + len(bars) * BAR / 2 + 4}">{figures}</text>')
        y += max(len(bars) * BAR, 11) + GAP
    return "\n".join(frame(title, scale, y, legend) + body + ["</svg>", ""])


def frame(title, scale, bottom, legend):
    width, height = LABELS + PLOT + VALUES, bottom + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           f'role="img" aria-label="{escape(title)}">', f"<style>{STYLE}</style>",
           f'<rect class="back" width="{width}" height="{height}"/>',
           f'<text class="title" x="8" y="20">{escape(title)}</text>']
    x = 8
    for gradient, name in legend:
        out.append(f'<rect class="{gradient}" x="{x}" y="31" width="10" height="10"/><text x="{x + 15}" y="40">{name}</text>')
        x += 110
    for value, name in scale.ticks():
        at = scale.at(value)
        kind = "base" if value == scale.base else "grid"
        out.append(f'<line class="{kind}" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 6}" y2="{bottom}"/>'
                   f'<text class="faint" x="{at:.1f}" y="{TOP - 10}" text-anchor="middle">{name}</text>')
    return out


def ratio_chart(part):
    lines = list(lines_of(part, lambda row: row.ratio))
    values = [value for _, _, bars in lines for _, value in bars]
    if not values:
        return None
    title = f"How many times longer the best peer takes, {part.facts['threads']} threads, FP32, plain tensors"
    return chart(title, lines, Logarithmic(min(values), max(values)),
                 lambda value: f"{value:.2f}" if value < 10 else f"{value:.0f}")


def roofline_chart(part):
    title = f"Per cent of the roofline measured in the same run, {part.facts['threads']} threads, FP32, plain tensors"
    return chart(title, lines_of(part, lambda row: row.roofline), Percent, lambda value: f"{value:.0f}")
