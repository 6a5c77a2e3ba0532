#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/statuses.md and docs/statuses.zh-CN.md list every status. Usage: check_statuses.py ROOT; exits 1 and says what is wrong.

Names and numbers come from include/. A status that a file of src/ or the stubs name can be returned: it needs a row with its
number, a cause and a cure. The others must stand in the section of those that are never returned. Names and numbers that no
header has are refused."""
import pathlib
import re
import sys

DEFINED = re.compile(r"(?:\b|_CONSTANT\(\w+, )(ACLNN_(?:ERR_\w+|SUCCESS)|ACL_(?:ERROR_\w+|SUCCESS)|INFINI_STATUS_\w+)(?:,| =) (\d+)")
OWN_ENUM = re.compile(r"RETROGRAD_OK = 0.*?retrogradStatus_t", re.S)
NAME = re.compile(r"\b(?:ACLNN_ERR_\w+|ACLNN_SUCCESS|ACL_ERROR_\w+|ACL_SUCCESS|INFINI_STATUS_\w+|RETROGRAD_[A-Z_]+)\b")
ROW = re.compile(r"\| (\d+) `(\w+)` \|(.*)\|$")
LISTED = re.compile(r"(\d+) `(\w+)`")


def texts(root, folder, *suffixes):
    for file in sorted((root / folder).rglob("*")):
        if file.suffix in suffixes:
            yield file.read_text(encoding="utf-8")


def defined_statuses(root):
    found = {}
    for text in texts(root, "include", ".h"):
        found.update((name, int(number)) for name, number in DEFINED.findall(text))
        if own := OWN_ENUM.search(text):
            found.update((name, int(number)) for name, number in re.findall(r"(RETROGRAD_\w+) = (\d+)", own[0]))
    return found


def wrong(page, defined, returned):
    rows, never, successes = {}, {}, set()
    for text in re.split(r"^## ", page, flags=re.M):
        found = [ROW.match(line) for line in text.splitlines()]
        rows.update((match[2], match) for match in found if match)
        if not any(found):  # the two lists behind the tables: success, and what is never returned
            never.update((name, int(number)) for number, name in LISTED.findall(text))
            successes.update(name for name in re.findall(r"`(\w+)`", text) if defined.get(name) == 0)
    for name, number in sorted(defined.items()):
        if number == 0:
            if name not in successes:
                yield f"{name} is not among those of success"
        elif name in returned:
            if name not in rows:
                yield f"{number} {name} can be returned and has no row"
            elif any(not cell.strip() for cell in rows[name][3].split("|")):
                yield f"{number} {name} lacks a cause or a cure"
        elif name in rows or name not in never:
            yield f"{number} {name} is never returned, and the page does not say so"
    for name, number in [(name, int(match[1])) for name, match in rows.items()] + list(never.items()):
        if defined.get(name) != number:
            yield f"{number} {name} is not what a header says"


def main():
    root = pathlib.Path(sys.argv[1])
    defined = defined_statuses(root)
    returned = set()
    for text in [*texts(root, "src", ".cpp", ".h", ".cu"), *texts(root, "cmake", ".cmake", ".in")]:
        returned.update(NAME.findall(text))
    failures = [f"docs/{name}: {what}" for name in ("statuses.md", "statuses.zh-CN.md")
                for what in wrong((root / "docs" / name).read_text(encoding="utf-8"), defined, returned)]
    if not returned & set(defined):
        failures.append("no status was found in src/: the check looks for the wrong thing")
    print("\n".join(failures) or f"{len(defined)} statuses, {len(returned & set(defined))} of them returned, are on both pages")
    return 1 if failures else 0


sys.exit(main())
