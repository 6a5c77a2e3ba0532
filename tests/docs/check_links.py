#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links between pages, and pages that comments name. Usage: check_links.py ROOT; exits 1 and names each that leads nowhere.

A link of a page, [text](path#heading), must reach a file and one of its headings. A page that any other text names
(docs/numerics.md, numerics.md) must lie there, in docs/, or beside the file. Addresses of the web are not looked at."""
import pathlib
import re
import sys

FOLDERS = (".ci", ".github", "bench", "cmake", "docs", "examples", "include", "python", "scripts", "src", "tests", "tools")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
PAGE = re.compile(r"(?<![\w/.-])((?:[\w-]+/)*[\w-]+\.md)\b")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
WRITTEN = {"goals.md", "build/bench/goals.md", "index.md", "bench.md"}  # by programs


def headings(text):
    """As GitHub makes them: lower case, spaces to dashes, no punctuation; the second of a name ends with -1."""
    found = []
    for line in FENCE.sub("", text).splitlines():
        if match := re.match(r"#+\s+(.*)", line):
            slug = re.sub(r"[^\w\- ]", "", match[1].strip().lower()).replace(" ", "-")
            found.append(slug if slug not in found else f"{slug}-{sum(f.startswith(slug) for f in found)}")
    return found


def offences(root, file, text):
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if file.suffix == ".md":
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, heading = target.partition("#")
                to = (file.parent / path) if path else file
                if not to.exists():
                    yield number, f"links to {path}, which does not exist"
                elif heading and heading not in headings(to.read_text(encoding="utf-8")):
                    yield number, f"links to #{heading}, and {to.relative_to(root) if path else file.name} has no such heading"
        for page in PAGE.findall(LINK.sub("", line)):
            if page not in WRITTEN and not any((root / folder / page).exists() for folder in ("", "docs", file.parent)):
                yield number, f"names {page}, which does not exist"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    files = sorted(f for f in root.glob("*") if f.is_file())
    for folder in FOLDERS:
        files += sorted(f for f in (root / folder).rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    found, pages = [], 0
    for file in files:
        if file.parent.name == "docs" and file.suffix == ".py":
            continue  # this check and its test, which name pages that do not exist
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not text
        pages += file.suffix == ".md"
        found += [f"{file.relative_to(root)}:{number}: {what}" for number, what in offences(root, file, text)]
    print("\n".join(found) or f"{pages} pages and {len(files)} files lead somewhere")
    return 1 if found or not pages else 0


sys.exit(main())
