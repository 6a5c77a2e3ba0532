# SPDX-License-Identifier: Apache-2.0
"""`python -m retrograd.check [PROBLEM | FILE]…`: computes problems and compares with NumPy, bit for bit.

Operands are small integers, so that the sums are exact; quotients of pooling are compared after rounding to the type.
Without arguments it runs a list of its own. Exit status: 0 all is right, 1 a result is wrong, 2 a problem is not legal.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _reference
from ._backward import Gradients
from ._problems import Problem, operands, parse, read


def expected(problem: Problem, arrays: dict[str, np.ndarray]) -> Any:
    """The gradients, or the output of a forward problem, in float64."""
    keys, kind = problem.keys, problem.keys["kind"]
    x, w = arrays["input"], arrays.get("weight")
    forward = "output" in problem.plan.tensors
    y = problem.plan.tensors["output"][1] if forward else arrays["grad_output"]
    if kind == "conv_tbc":
        pad = int(keys.get("pad", 0))
        return (_reference.conv_tbc(x, w, arrays["bias"], y, pad) if forward
                else _reference.conv_tbc_backward(y, x, w, pad))
    if kind == "conv":
        axes = x.ndim - 2
        attributes = (problem.numbers("stride", axes, 1), problem.pads(axes), problem.numbers("dilation", axes, 1),
                      int(keys.get("groups", 1)), keys.get("transposed", "0") == "1")
        return (_reference.conv(x, w, arrays.get("bias"), y, *attributes) if forward
                else _reference.conv_backward(y, x, w, *attributes))
    axes = int(keys.get("spatial", 0)) or x.ndim - 2
    kernel = problem.numbers("kernel", axes, 1)
    stride = problem.numbers("stride", axes, 0) if "stride" in keys else kernel
    attributes = (kernel, stride, problem.numbers("padding", axes, 0), keys.get("count_include_pad", "1") == "1",
                  int(keys.get("divisor", 0)))
    if forward:
        return _reference.avg_pool(x, y, *attributes)
    return Gradients(_reference.avg_pool_backward(y, x.shape, *attributes), None, None)


def wrong_elements(got: np.ndarray, exact: np.ndarray, summed: bool) -> int:
    """How many differ. `summed`: sums of quotients, which are rounded on their way: a unit in the last place is let pass."""
    rounded = exact.astype(got.dtype)
    if not summed:
        return int(np.sum(got != rounded))
    # ml_dtypes has finfo of its own for its types; two units of the type's precision cover both.
    digits = {"float32": 23, "float16": 10, "bfloat16": 7}[got.dtype.name]
    wide, right = got.astype(np.float64), rounded.astype(np.float64)
    return int(np.sum(np.abs(wide - right) > 2.0 ** -digits * np.maximum(np.abs(right), 1)))


def check(text: str, seed: int = 0) -> dict[str, int]:
    """Wrong elements of each gradient, or of the output.

    >>> from retrograd.check import check
    >>> check("conv input=1x2x5x5 weight=3x2x3x3")
    {'grad_input': 0, 'grad_weight': 0, 'grad_bias': 0}
    """
    problem = parse(text)
    if any(dtype in ("hif8", "e4m3") for dtype, _, _ in problem.plan.tensors.values()):
        import ml_dtypes  # noqa: F401  (e4m3 has a NumPy type then)
    arrays = operands(problem, np.random.default_rng(seed))
    got = problem.plan(**arrays)
    exact = expected(problem, arrays)
    if "output" in problem.plan.tensors:
        return {"output": wrong_elements(got, exact, problem.keys["kind"] == "avgpool")}
    return {name: wrong_elements(result, right, problem.keys["kind"] == "avgpool")
            for name, result, right in zip(Gradients._fields, got, exact) if result is not None}


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if any(a in ("-h", "--help") for a in arguments):
        print(__doc__)
        return 0
    failed = 0
    for text in read(arguments):
        try:
            wrong = check(text)
        except (TypeError, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
        failed += any(wrong.values())
        verdict = "ok    " if not any(wrong.values()) else "WRONG "
        print(f"{verdict} {text}" + "".join(f"  {k}: {v} wrong" for k, v in wrong.items() if v))
    print(f"{failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
