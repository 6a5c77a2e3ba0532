# SPDX-License-Identifier: Apache-2.0
"""What became of the calls so far."""

import retrograd.torch


def taken(operator=None):
    """How many calls were ours, of one operator or of all."""
    stats = retrograd.torch.stats()
    names = [operator] if operator else [name for name, value in stats.items() if isinstance(value, dict)]
    return sum(stats[name]["taken"] for name in names)


def fell_back():
    stats = retrograd.torch.stats()
    return sum(sum(value["fell_back"].values()) for value in stats.values() if isinstance(value, dict))
