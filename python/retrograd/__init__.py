# SPDX-License-Identifier: Apache-2.0
"""Backward passes of convolution and average pooling, on CPUs and NVIDIA GPUs, with reproducible bits.

Arrays are NumPy's (float32, float16, and bfloat16 or float8_e4m3fn of ml_dtypes) or of any library with DLPack, in main
memory or on a GPU; nothing is copied. Calls run without the GIL. What is wrong with an argument is said by a
ValueError or a TypeError that names it, its value and the rule.

>>> import numpy as np, retrograd
>>> x, w, dy = np.ones((1, 1, 4), "f"), np.ones((1, 1, 3), "f"), np.ones((1, 1, 2), "f")
>>> retrograd.conv_backward(dy, x, w).grad_input.tolist()
[[[1.0, 2.0, 2.0, 1.0]]]
"""
import importlib.util as _import_util
import os as _os

from ._library import load_named as _load_named
from ._library import version_of as _version_of

_named = _load_named()

if _named is not None and _import_util.find_spec("._core", __name__) is None:
    # A checkout: the library is there, the extension module is not built. retrograd.torch works without.
    __version__: str = _version_of(_named)
    __all__: list[str] = []

    def __getattr__(name: str) -> object:
        raise AttributeError(f"retrograd.{name} needs the extension module, which is not built here: `pip install .`; "
                             "retrograd.torch works without")
else:
    from . import _core
    from ._backward import Gradients, avg_pool_backward, conv_backward, conv_tbc_backward
    from ._forward import avg_pool, conv, conv_tbc
    from ._info import info
    from ._plan import Plan, explain, plan

    __version__ = _core.version()
    __all__ = [
        "Gradients", "Plan", "avg_pool", "avg_pool_backward", "clear_cache", "conv", "conv_backward", "conv_tbc",
        "conv_tbc_backward", "explain", "info", "plan",
    ]

    def clear_cache() -> None:
        """Forgets the plans of earlier calls and frees the memory kept for the next ones."""
        _core.clear_cache()

    # Plans stay with the parent: a forked child makes its own.
    if hasattr(_os, "register_at_fork"):
        _os.register_at_fork(after_in_child=_core.clear_cache)
