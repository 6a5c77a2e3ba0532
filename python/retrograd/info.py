# SPDX-License-Identifier: Apache-2.0
"""`python -m retrograd.info`: prints what a bug report needs."""
from __future__ import annotations

import sys
import types
from typing import Any

from ._info import info


def main() -> int:
    for key, value in info().items():
        if isinstance(value, dict):
            value = " ".join(f"{k}={v}" for k, v in value.items()) or "none set"
        if isinstance(value, list):
            value = "\n             ".join(value)
        print(f"{key.replace('cached_', 'kept '):<12} {value}")
    return 0


class _Callable(types.ModuleType):
    """Once this module is imported, retrograd.info is the module: it can be called like the function."""

    def __call__(self) -> dict[str, Any]:
        return info()


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    sys.exit(main())
