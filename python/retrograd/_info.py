# SPDX-License-Identifier: Apache-2.0
"""What a bug report needs."""
from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import _core


def info() -> dict[str, Any]:
    """Versions, devices, settings from the environment, and what the caches hold.

    >>> import retrograd
    >>> retrograd.info()["devices"][0].split(",")[0]
    'cpu:0'
    """
    devices = [_core.describe_device(f"cpu:{i}") for i in range(_core.device_count(False))]
    devices += [_core.describe_device(f"cuda:{i}") for i in range(_core.device_count(True))]
    plans, workspace = _core.cache_info()
    return {
        "version": _core.version(),
        "package": str(Path(__file__).parent),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.platform(),
        "devices": devices,
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("RETROGRAD_")},
        "cached_plans": plans,
        "cached_workspace_bytes": workspace,
        "torch": getattr(sys.modules.get("torch"), "__version__", None),
    }
