# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/performance.md and docs/performance_rows.md that programs write, between markers."""


def insert(page, name, text):
    """The page with what stands between the markers replaced; with the markers added at its end where it has none."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    if begin not in page or end not in page:
        page = f"{page.rstrip()}\n\n{begin}\n{end}\n"
    before, rest = page.split(begin, 1)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"


def write_part(path, name, text):
    """The same in a file, which need not be there."""
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(insert(page, name, text), encoding="utf-8")
