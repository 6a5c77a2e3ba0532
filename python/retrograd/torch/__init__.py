# SPDX-License-Identifier: Apache-2.0
"""Retrograd's backward operators in PyTorch.

    import retrograd.torch
    retrograd.torch.enable()          # from now on, in every model and every thread

    with retrograd.torch.enable():    # or for a while
        loss.backward()

`enable` overrides `aten::convolution_backward`, `aten::conv_tbc_backward`, `aten::avg_pool2d_backward` and
`aten::avg_pool3d_backward` on CPU tensors and, where there is an NVIDIA GPU, on CUDA tensors. What Retrograd does not take goes to the kernel that was there before.
`stats()` counts both, with the reasons. docs/pytorch.md has the policies and what falls back.
"""

from ._build import BuildError
from ._override import Override, disable, enable, enabled, reset_stats, stats

__all__ = ["BuildError", "Override", "disable", "enable", "enabled", "reset_stats", "stats"]
