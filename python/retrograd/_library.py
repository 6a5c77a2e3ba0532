# SPDX-License-Identifier: Apache-2.0
"""Another libretrograd than the package's own: the variable RETROGRAD_LIBRARY names its file.

It is loaded first, and the loader gives what is loaded to everything that needs a library of that name. A checkout whose
extension module is not built has `retrograd.torch` this way, which needs the library and a compiler alone.
"""
from __future__ import annotations

import ctypes
import os


def load_named() -> ctypes.CDLL | None:
    """The library that RETROGRAD_LIBRARY names; None where it names none."""
    path = os.environ.get("RETROGRAD_LIBRARY")
    if not path:
        return None
    try:
        return ctypes.CDLL(os.path.abspath(path), ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"RETROGRAD_LIBRARY is {path!r}, which cannot be loaded: {error}") from error


def version_of(library: ctypes.CDLL) -> str:
    function = library.retrogradVersion
    function.restype = ctypes.c_char_p
    return function().decode()
