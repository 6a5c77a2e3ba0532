# SPDX-License-Identifier: Apache-2.0
"""Problems as text, with arrays to run them on: for `python -m retrograd.check` and `bench`."""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ._plan import Plan

DEFAULTS = [
    "conv input=2x3x9x8 weight=4x3x3x3 stride=2x1 padding=1x1",
    "conv input=2x8x14x14 weight=16x8x3x3 padding=1x1 dtype=f16",
    "conv input=2x16x7x7 weight=16x1x3x3 groups=16 padding=1x1",
    "conv input=2x12x20 weight=12x4x5 groups=3 stride=2 dilation=2 padding=4",
    "conv input=1x4x5x6 weight=4x3x3x3 stride=2x2 padding=1x1 output_padding=1x1 transposed=1",
    "conv input=1x4x5 weight=4x2x3 dilation=3 padding=2 output_padding=2 transposed=1",
    "conv input=1x2x4x5x6 weight=3x2x2x3x3 padding=1x1x1",
    "conv_tbc input=9x2x4 weight=3x4x6 pad=1",
    "avgpool input=2x3x8x9 kernel=2 padding=1",
    "avgpool input=1x2x6x6x6 kernel=2x3x2 stride=2 ceil=1",
    "conv input=2x3x9x8 weight=4x3x3x3 stride=2x1 padding=1x1 bias=4 forward=1",
    "conv input=1x4x5 weight=4x2x3 dilation=3 padding=2 output_padding=2 transposed=1 forward=1",
    "conv_tbc input=9x2x4 weight=3x4x6 pad=1 forward=1",
    "avgpool input=2x3x8x9 kernel=2 padding=1 forward=1",
]


@dataclass
class Problem:
    """A line of text and what it says beside the tensors."""

    text: str
    plan: Plan
    keys: dict[str, str] = field(default_factory=dict)

    def numbers(self, key: str, axes: int, otherwise: int) -> tuple[int, ...]:
        """A list of the text, one entry for each axis, or two."""
        value = self.keys.get(key)
        if value is None:
            return (otherwise,) * axes
        numbers = tuple(int(v) for v in value.split("x"))
        return numbers * axes if len(numbers) == 1 else numbers

    def pads(self, axes: int) -> tuple[tuple[int, int], ...]:
        values = self.numbers("padding", axes, 0)
        if len(values) == 2 * axes:
            return tuple((values[2 * i], values[2 * i + 1]) for i in range(axes))
        return tuple((v, v) for v in values)


def parse(text: str, device: str = "cpu") -> Problem:
    """Raises ValueError with the library's message for a text that is none, or a problem that is not legal."""
    plan = Plan(text, device)
    keys = dict(token.split("=", 1) for token in text.split()[1:])
    return Problem(text, plan, {"kind": text.split()[0], **keys})


def read(arguments: list[str]) -> list[str]:
    """Each argument is a problem, or a file of them, one a line."""
    if not arguments:
        return DEFAULTS
    texts = []
    for argument in arguments:
        if " " in argument or not Path(argument).is_file():
            texts.append(argument)
            continue
        lines = (line.strip() for line in Path(argument).read_text(encoding="utf-8").splitlines())
        texts += [line for line in lines if line and not line.startswith("#")]
    return texts


def operands(problem: Problem, random: np.random.Generator, most: int = 2) -> dict[str, np.ndarray]:
    """Small integers, whose sums every type up to 2^11 holds exactly; unsigned arrays hold nothing but 0."""
    made = {}
    for name in ("grad_output", "input", "weight", "bias"):
        if name not in problem.plan.tensors:
            continue
        array = problem.plan.empty(name)
        if array.dtype.kind != "u":
            array[...] = random.integers(-most, most + 1, array.shape).astype(array.dtype)
        made[name] = array
    return made
