#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pages say of implementations: the tables in docs/dispatch.md are made of tuning/*.txt, which a test compares with the
registry, and of the sources; every page names only implementations that exist.
Usage: check_tables.py ROOT [--update]; exits 1 where a table is old or a name is unknown."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = root / "docs/dispatch.md"


def source_of(name):
    """A link to the file of src/engines that defines the implementation's getter, or has its name."""
    device, _, own = name.rpartition(".")
    folder, getter = (device, own) if device else (name, "candidate")
    definition = re.compile(rf'^const Candidate& {getter}\(\) {{|"{re.escape(name)}"', re.MULTILINE)
    for path in sorted((root / "src/engines" / folder).rglob("*.cpp")):
        if definition.search(path.read_text(encoding="utf-8")):
            return f"[{path.parent.name}/{path.name}](../{path.relative_to(root).as_posix()})"
    sys.exit(f"{name}: no file below src/engines/{folder} has 'const Candidate& {getter}() {{' or its name")


text = old = page.read_text(encoding="utf-8")
known = set()
for kind in ("cpu", "gpu"):
    rows = ["| implementation | takes | source |", "|---|---|---|"]
    for line in (root / f"tuning/{kind}.txt").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([a-z0-9_.]+) .*# (.*)", line):
            known.add(match[1])
            rows.append(f"| `{match[1]}` | {match[2]} | {source_of(match[1])} |")
    begin, end = f"<!-- begin: tuning/{kind}.txt -->\n", f"<!-- end: tuning/{kind}.txt -->"
    if begin not in text or end not in text:
        sys.exit(f"{page}: no lines '{begin.strip()}' and '{end}'")
    head, rest = text.split(begin, 1)
    text = head + begin + "\n".join(rows) + "\n" + end + rest.split(end, 1)[1]

unknown = []
for each in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
    if each.name == "CHANGELOG.md":  # tells what there was
        continue
    for name in re.findall(r"`((?:cpu|cuda)\.[a-z0-9_]+)`", text if each == page else each.read_text(encoding="utf-8")):
        if name not in known:
            unknown.append(f"{each.relative_to(root)} names {name}, which tuning/ does not have")
if unknown:
    sys.exit("\n".join(unknown))
if text == old:
    print("the tables of implementations are current, and no page names others")
elif "--update" in sys.argv:
    page.write_text(text, encoding="utf-8")
    print(f"{page} is written")
else:
    sys.exit(f"{page} is old: run tests/docs/check_tables.py . --update")
