# SPDX-License-Identifier: Apache-2.0
"""Plans: one problem, planned once, run often."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import (
    NAME_OF, NAMES as DTYPES, OWN, check_apart, for_core, from_elements, numpy_dtype, stream_number, workspace_maker,
)
from ._backward import NAMES, Gradients, given_results

__all__ = ["Plan", "explain", "plan"]


class Plan:
    """How one problem is computed on one device. `plan` makes it; any number of threads may call it at once.

    Attributes: `problem` (its line of text), `device`, `engines` (who computes what), `workspace_bytes`, `cost`
    (microseconds that it is thought to take), `tensors` (name: (dtype, shape, strides in elements)).
    """

    __slots__ = ("_plan", "device", "problem", "tensors")

    def __init__(self, problem: str, device: str = "cpu") -> None:
        self._plan = _core.plan(problem, device)
        self.problem = problem
        self.device = device
        self.tensors: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {}
        for number, name in enumerate(NAMES):
            if (tensor := self._plan.tensor(number)) is not None:
                self.tensors[name] = (NAME_OF[tensor[0]], tensor[1], tensor[2])

    def __repr__(self) -> str:
        return f"Plan({self.problem!r}, {self.device!r})"

    @property
    def engines(self) -> str:
        return self._plan.engines

    @property
    def workspace_bytes(self) -> int:
        return self._plan.workspace_bytes

    @property
    def cost(self) -> float:
        return self._plan.cost

    def empty(self, name: str) -> np.ndarray:
        """A NumPy array for a tensor of the plan, zeroed, with its type and strides."""
        if name not in self.tensors:
            raise ValueError(f"the plan has no {name}, but {', '.join(self.tensors)}")
        dtype, shape, strides = self.tensors[name]
        return from_elements(DTYPES[dtype], shape, strides)

    def __call__(self, grad_output: Any = None, input: Any = None, weight: Any = None, bias: Any = None, *,
                 out: Any = None, stream: Any = None) -> Any:
        """Runs it. Arrays are those of the problem, strides included; what no result reads may be None.

        Returns `Gradients`, or the output of a forward problem. `out` as in `conv_backward`: three arrays or None, for
        pooling too; one array for a forward problem. Without it results are new NumPy arrays.
        """
        forward = "output" in self.tensors
        names = NAMES[7:] if forward else NAMES[3:6]
        given = (out,) if forward else given_results(out, [name in self.tensors for name in names])
        results = {name: result for name, result in zip(names, given) if result is not None}
        arrays = dict(zip(NAMES, (grad_output, input, weight, None, None, None, bias)))
        if out is None:
            if self.device.partition(":")[0] != "cpu":
                raise ValueError("out is None, expected the results of a plan for a GPU")
            results = {name: self.empty(name) for name in names if name in self.tensors}
        else:
            check_apart(results, {name: array for name, array in arrays.items() if array is not None})
        arrays.update(results)
        borrowed, kinds = zip(*((None, OWN) if (array := arrays.get(name)) is None else self._for_core(array, name)
                                for name in NAMES))
        reference = input if grad_output is None else grad_output
        self._plan.run(borrowed, kinds, stream_number(stream, reference), workspace_maker(reference))
        return results["output"] if forward else Gradients(*(results.get(name) for name in names))

    def _for_core(self, array: Any, name: str) -> tuple[Any, int]:
        planned = self.tensors.get(name)
        return for_core(array, name, OWN if planned is None else DTYPES[planned[0]])


def plan(problem: str, device: str = "cpu") -> Plan:
    """Plans a problem given as one line of text, as logs and errors print it.

    >>> import numpy as np, retrograd
    >>> p = retrograd.plan("avgpool input=1x1x4 kernel=2")
    >>> p.tensors["grad_output"]
    ('f32', (1, 1, 2), (2, 2, 1))
    >>> p(np.ones((1, 1, 2), "f")).grad_input.tolist()
    [[[0.5, 0.5, 0.5, 0.5]]]
    >>> retrograd.plan("avgpool input=1x1x4 kernel=2 forward=1")(input=np.arange(4, dtype="f").reshape(1, 1, 4)).tolist()
    [[[0.5, 2.5]]]
    """
    return Plan(problem, device)


def explain(problem: str, device: str = "cpu") -> str:
    """Whether a problem is legal, which engines take it, why the others do not, and the workspace.

    >>> import retrograd
    >>> print(retrograd.explain("avgpool input=1x1x4 kernel=2").splitlines()[0])
    problem    avgpool input=1x1x4 grad_output=1x1x2 kernel=2
    """
    return _core.explain(problem, device)
