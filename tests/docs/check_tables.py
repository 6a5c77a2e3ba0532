#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of implementations in docs/dispatch.md are those of tuning/*.txt, which a test compares with the registry.
Usage: check_tables.py ROOT [--update]; exits 1 where a table is old."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = root / "docs/dispatch.md"
text = old = page.read_text(encoding="utf-8")
for kind in ("cpu", "gpu"):
    rows = ["| implementation | takes |", "|---|---|"]
    for line in (root / f"tuning/{kind}.txt").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([a-z0-9_.]+) .*# (.*)", line):
            rows.append(f"| `{match[1]}` | {match[2]} |")
    begin, end = f"<!-- begin: tuning/{kind}.txt -->\n", f"<!-- end: tuning/{kind}.txt -->"
    if begin not in text or end not in text:
        sys.exit(f"{page}: no lines '{begin.strip()}' and '{end}'")
    head, rest = text.split(begin, 1)
    text = head + begin + "\n".join(rows) + "\n" + end + rest.split(end, 1)[1]
if text == old:
    print("the tables of implementations are current")
elif "--update" in sys.argv:
    page.write_text(text, encoding="utf-8")
    print(f"{page} is written")
else:
    sys.exit(f"{page} is old: run tests/docs/check_tables.py . --update")
