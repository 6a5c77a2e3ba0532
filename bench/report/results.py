# SPDX-License-Identifier: Apache-2.0
"""What `retrograd bench --json` wrote, read back: rows with their family, parts put together."""
import json
import math
import pathlib

# In the order of the report.
FAMILIES = (
    "dense 3×3", "dense 1×1", "dense, other kernels", "stride 2", "dilated", "1-D", "3-D", "transposed",
    "depthwise", "depthwise 1-D and 3-D", "few channels a group", "stems and patches", "big batch, tiny space",
    "small problems", "average pooling",
)

# Passes that are further apart than this were disturbed: what the row says is doubtful.
UNSTABLE = 1.3


def numbers(text):
    return [int(word) for word in text.split(":")[0].split("@")[0].split("x")]


def family_of(problem):
    """The family of a problem in the one-line text form; what is most telling about it decides."""
    kind, *words = problem.split()
    keys = dict(word.split("=", 1) for word in words)
    if kind == "avgpool":
        return "average pooling"
    shape, weight = numbers(keys["input"]), numbers(keys["weight"])
    groups = int(keys.get("groups", "1"))
    channels, space, kernel = shape[1], shape[2:], weight[2:]
    strides, dilations = numbers(keys.get("stride", "1")), numbers(keys.get("dilation", "1"))
    if keys.get("transposed") == "1":
        return "transposed"
    if shape[0] >= 128 and math.prod(space) <= 16:
        return "big batch, tiny space"
    if groups == 1 and math.prod(shape) * weight[0] * math.prod(kernel) < 2e7:
        return "small problems"
    if groups == channels > 1:
        return "depthwise" if len(space) == 2 else "depthwise 1-D and 3-D"
    if groups > 1 and channels // groups <= 32:
        return "few channels a group"
    if channels <= 4:
        return "stems and patches"
    if max(dilations) > 1 and len(space) > 1:
        return "dilated"
    if len(space) != 2:
        return "1-D" if len(space) == 1 else "3-D"
    if max(strides) > 1:
        return "stride 2"
    return {(3, 3): "dense 3×3", (1, 1): "dense 1×1"}.get(tuple(kernel), "dense, other kernels")


class Row:
    """One gradient, or all of them, of one problem."""

    def __init__(self, fields):
        self.name, self.gradient = fields["name"], fields["pass"]
        self.problem, self.steps = fields["problem"], fields["steps"]
        self.ms = fields["ms"]
        self.peak, self.copy, self.roofline = (
            fields["peak_percent"], fields["copy_percent"], fields["roofline_percent"])
        self.gbs, self.level = fields["gbs"], fields["copy_level"]
        self.family = family_of(self.problem)
        timed = [peer for peer in fields["peers"] if "ms" in peer]
        best = min(timed, key=lambda peer: peer["ms"], default={})
        self.peer_ms, self.peer, self.variant = best.get("ms"), best.get("name"), best.get("variant")
        self.unstable = max(fields.get("spread", 1), best.get("spread", 1)) > UNSTABLE

    @property
    def ratio(self):
        """How many times longer the best peer takes; None where none took the problem."""
        return self.peer_ms / self.ms if self.peer_ms else None

    @property
    def key(self):
        return self.name, self.gradient


class Part:
    """All rows of one kind of run, and what was written about the machine and the peers."""

    def __init__(self, facts, rows):
        self.facts, self.rows = facts, rows
        self.by_key = {row.key: row for row in rows}

    def names(self):
        """Row names by family, within a family as in the suites."""
        first = {row.name: row.family for row in reversed(self.rows)}
        names = list(dict.fromkeys(row.name for row in self.rows))
        return sorted(names, key=lambda name: FAMILIES.index(first[name]))

    def of(self, name, gradient):
        return self.by_key.get((name, gradient))


def load(folder, name):
    """The part `name`, from the files of its folder in the order they were written; None where there is none."""
    files = sorted(pathlib.Path(folder, name).glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
    rows, facts = {}, None
    for file in files:
        content = json.loads(file.read_text(encoding="utf-8"))
        facts = {key: value for key, value in content.items() if key not in ("rows", "summary")}
        for fields in content["rows"]:
            row = Row(fields)
            rows[row.key] = row
    return Part(facts, list(rows.values())) if rows else None


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None
