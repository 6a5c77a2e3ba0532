#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that run_blocks.py can fail, and that it runs what it says."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("run_blocks.py")


def run(page):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "root")
        root.mkdir()
        (root / "page.md").write_text(page, encoding="utf-8")
        result = subprocess.run([sys.executable, SCRIPT, "--root", root, "--scratch", f"{folder}/scratch", "--python", sys.executable,
                                 root / "page.md"], capture_output=True, text=True, check=False)
        assert (root / "page.md").read_text(encoding="utf-8") == page, "a block wrote into the checkout"
        return result.returncode, result.stdout


def block(language, code, words=""):
    return f"```{language}{' ' + words if words else ''}\n{code}\n```\n"


class RunBlocks(unittest.TestCase):
    def passes(self, page, ran=1):
        code, said = run(page)
        self.assertEqual(code, 0, said)
        self.assertIn(f"{ran} code blocks of 1 pages run, 0 failed", said)
        return said

    def fails(self, page, reason):
        code, said = run(page)
        self.assertEqual(code, 1, said)
        self.assertIn(reason, said)

    def test_programs_and_commands(self):
        self.passes(block("python", "print(1)") + block("sh", "true"), ran=2)
        self.fails(block("python", "print(1)\nraise SystemExit(3)"), "page.md:1: exit status 3")
        self.fails("x\n\n" + block("sh", "false\ntrue"), "page.md:3: exit status 1")
        self.passes(block("sh", "exit 3", 'status="3"'))

    def test_what_is_printed(self):
        shown = block("text", "1\n…\n9", "output")
        self.passes(block("python", "print(1, 2, 9, sep='\\n')") + shown)
        self.passes(block("python", "print(1, 9, sep='\\n')") + shown)
        self.fails(block("python", "print(1, 2, 8, sep='\\n')") + shown, "the page shows")
        self.passes(block("python", "print('a b')") + "It prints `a b`.\n")
        self.fails(block("python", "print('a b')") + "It prints `a c`.\n", "the page says that it prints 'a c'")

    def test_files(self):
        self.passes(block("text", "hello", 'file="a.txt"') + block("sh", "grep -qx hello a.txt"))
        self.passes(block("python", "print(2)", 'file="a.py" no-run="below"') + block("sh", "python3 a.py | grep -qx 2"))

    def test_files_of_the_checkout_are_left_alone(self):
        self.passes(block("text", "hello", 'file="page.md"') + block("sh", "grep -qx hello page.md"))
        self.fails(block("sh", "true") + block("text", "hello", 'file="docs/page.md"'), "expected a name without folders")

    def test_what_is_not_run_says_why(self):
        said = self.passes(block("sh", "true") + block("sh", "false", 'no-run="takes hours"'))
        self.assertIn("page.md:4: not run: takes hours", said)
        self.fails(block("sh", "true") + block("sh", "false", "no-run"), "no-run has no reason")
        self.fails(block("cpp", "f();"), "no main")
        self.assertIn("skipped: no environment with PyTorch", self.passes(block("sh", "true") + block("python", "import torch")))

    def test_transcripts(self):
        self.fails(block("", "$ retrograd_that_is_not_there --help\nusage"), "exit status 127")

    def test_a_page_without_blocks_is_no_success(self):
        self.assertEqual(run("text\n")[0], 1)


unittest.main()
