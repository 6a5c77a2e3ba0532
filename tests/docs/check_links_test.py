#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that check_links.py can fail: trees with one offence each, and one whose links all lead somewhere."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("check_links.py")


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        return subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)


class CheckLinks(unittest.TestCase):
    def refused(self, name, text, offence):
        result = run({"README.md": "# Title", "docs/a.md": "# NaN, Inf, padding\n```\n# no heading\n```", name: f"\n{text}"})
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(result.stdout.strip(), f"{name}:2: {offence}")

    def test_a_tree_whose_links_lead_somewhere_passes(self):
        result = run({
            "README.md": "# One\n## One\n[a](docs/a.md#nan-inf-padding), [b](#one-1), [c](https://example.org/none.md), [d](docs)",
            "docs/a.md": "# NaN, Inf, padding\n[up](../README.md) docs/a.md a.md",
            "src/a.h": "// a.md, docs/a.md, b.md",
            "src/b.md": "",
        })
        self.assertEqual((result.returncode, result.stdout), (0, "3 pages and 4 files lead somewhere\n"))

    def test_each_offence_is_named(self):
        self.refused("docs/b.md", "[x](c.md)", "links to c.md, which does not exist")
        self.refused("docs/b.md", "[x](../src/c.h)", "links to ../src/c.h, which does not exist")
        self.refused("docs/b.md", "[x](a.md#inf)", "links to #inf, and docs/a.md has no such heading")
        self.refused("docs/b.md", "[x](a.md#no-heading)", "links to #no-heading, and docs/a.md has no such heading")
        self.refused("docs/b.md", "[x](#here)", "links to #here, and b.md has no such heading")
        self.refused("docs/b.md", "as c.md says", "names c.md, which does not exist")
        self.refused("src/a.h", "// (formats.md, Winograd)", "names formats.md, which does not exist")
        self.refused("src/a.h", "// docs/README.md", "names docs/README.md, which does not exist")

    def test_a_tree_without_pages_is_no_success(self):
        self.assertEqual(run({"src/a.h": ""}).returncode, 1)


unittest.main()
