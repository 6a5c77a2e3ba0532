#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/site makes of pages, and the proof that its check of the built site can fail."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SITE = pathlib.Path(__file__).resolve().parents[2] / "scripts/site"
ROOT_PAGES = ("README.md", "README.zh-CN.md", "HACKING.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md")


def write(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class MakePages(unittest.TestCase):
    def made(self, files):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, {**{page: "# x\n" for page in ROOT_PAGES}, **files})
            subprocess.run([sys.executable, SITE / "make_pages.py", folder, f"{folder}/out"], check=True, capture_output=True)
            out = pathlib.Path(folder, "out")
            return {path.relative_to(out).as_posix(): path.read_text(encoding="utf-8") for path in out.rglob("*") if path.is_file()}

    def test_links(self):
        pages = self.made({"README.md": "[a](docs/a.md#b) [s](src/x.cpp) [f](src) [w](https://example.org) [h](#x)\n",
                           "docs/a.md": "# b\n", "docs/q/c.md": "[r](../../README.md) [a](../a.md) [s](../../src/x.cpp)\n", "src/x.cpp": "int x;\n"})
        self.assertEqual(pages["index.md"],
                         "[a](a.md#b) [s](files/src/x.cpp.md) [f](files/src/index.md) [w](https://example.org) [h](#x)\n")
        self.assertEqual(pages["q/c.md"], "[r](../index.md) [a](../a.md) [s](../files/src/x.cpp.md)\n")
        self.assertIn("int x;", pages["files/src/x.cpp.md"])
        self.assertIn("`x.cpp`", pages["files/src/index.md"])

    def test_lists_tables_and_fences(self):
        pages = self.made({"docs/a.md": 'text:\n- one\n  more\n- two\n\ntext\n| a |\n|---|\n```sh no-run="x"\n- [l](no.md)\n```\n'})
        self.assertEqual(pages["a.md"], "text:\n\n- one\n  more\n- two\n\ntext\n\n| a |\n|---|\n```sh\n- [l](no.md)\n```\n")


class CheckSite(unittest.TestCase):
    def checked(self, files):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, files)
            result = subprocess.run([sys.executable, SITE / "check_site.py", folder], capture_output=True, text=True, check=False)
            return result.returncode, result.stdout.strip()

    def test_a_site_whose_links_lead_somewhere(self):
        code, said = self.checked({"index.html": '<a href="a/b.html#c">x</a><a href="#d"></a><p id="d"><a href="https://example.org">',
                                   "a/b.html": '<h1 id="c"></h1><img src="../x.svg">', "x.svg": ""})
        self.assertEqual(code, 0, said)

    def test_each_offence_is_named(self):
        self.assertEqual(self.checked({"index.html": '<a href="a.html">'}), (1, "index.html: a.html does not exist"))
        self.assertEqual(self.checked({"index.html": '<img src="x.svg">'}), (1, "index.html: x.svg does not exist"))
        self.assertEqual(self.checked({"index.html": '<a href="#c">'}), (1, "index.html: #c: no such heading"))
        self.assertEqual(self.checked({"x.txt": ""})[0], 1)


unittest.main()
