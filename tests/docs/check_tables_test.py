#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that check_tables.py can fail: trees with one offence each, and one that is current."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("check_tables.py")
TABLE = """<!-- begin: tuning/{0}.txt -->
| implementation | takes | source |
|---|---|---|
| `{1}.a` | everything | [dense/a.cpp](../src/engines/{1}/dense/a.cpp) |
<!-- end: tuning/{0}.txt -->
"""
FILES = {
    "README.md": "`cpu.a`",
    "CHANGELOG.md": "`cpu.gone`",
    "docs/dispatch.md": TABLE.format("cpu", "cpu") + TABLE.format("gpu", "cuda"),
    "tuning/cpu.txt": "# a table\ncpu.a 1 1 1 1  # everything",
    "tuning/gpu.txt": "cuda.a 1 1 1 1  # everything",
    "src/engines/cpu/dense/a.cpp": "const Candidate& a() {",
    "src/engines/cuda/dense/a.cpp": "const Candidate& a() {",
}


def run(changed, *options):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**FILES, **changed}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        done = subprocess.run([sys.executable, SCRIPT, folder, *options], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr, pathlib.Path(folder, "docs/dispatch.md").read_text(encoding="utf-8")


class CheckTables(unittest.TestCase):
    def test_current(self):
        self.assertEqual(run({})[0], 0)

    def test_an_old_table(self):
        code, said, _ = run({"tuning/cpu.txt": "cpu.a 1 1 1 1  # half of it"})
        self.assertEqual(code, 1)
        self.assertIn("is old", said)

    def test_update(self):
        code, _, page = run({"tuning/cpu.txt": "cpu.a 1 1 1 1  # half of it"}, "--update")
        self.assertEqual(code, 0)
        self.assertIn("| `cpu.a` | half of it |", page)

    def test_an_implementation_without_source(self):
        code, said, _ = run({"tuning/gpu.txt": "cuda.b 1 1 1 1  # everything"})
        self.assertEqual(code, 1)
        self.assertIn("cuda.b: no file below src/engines/cuda", said)

    def test_a_page_that_names_what_is_gone(self):
        code, said, _ = run({"docs/how_to.md": "as `cpu.gone` does"})
        self.assertEqual(code, 1)
        self.assertIn("docs/how_to.md names cpu.gone", said)


if __name__ == "__main__":
    unittest.main()
