#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of pages. Usage: run_blocks.py --scratch FOLDER [--prefix P] [--python P] [--torch-python P] PAGE…

Blocks of the languages c, cpp, python and sh are run, and texts that begin with "$ retrograd": each by itself, in a folder
of its page that shows the folders of the checkout and, as `prefix`, the installed package. Words behind the language:

  no-run="why"    is not run, and says why
  file="name"     is also written into the folder, for a command of a later block; with no-run, only that
  status="1"      the exit status that is expected, 0 without it

A block ```text output behind a program holds what it prints; a line … in it stands for any lines. Words like "It prints
`x`" behind a program must be true, too. Python blocks that import torch run with --torch-python, and are skipped without.
Exits 1 when a block fails, or when a C or C++ block without main is not marked."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

FENCE = re.compile(r"^```(?P<language>\w*)(?P<words>[^\n]*)\n(?P<code>.*?)^```[ ]*$", re.M | re.S)
WORD = re.compile(r'([\w-]+)(?:="([^"]*)")?')
SAYS = re.compile(r"\bprints? `([^`]+)`")
SECONDS = 300


class Block:
    def __init__(self, text, match):
        self.language, self.code = match["language"], match["code"]
        self.words = dict(WORD.findall(match["words"]))
        self.line = text.count("\n", 0, match.start()) + 1
        self.transcript = self.language in ("", "text") and self.code.startswith("$ retrograd")
        following = FENCE.search(text, match.end())
        between = text[match.end():following.start() if following else len(text)]
        self.promised = SAYS.findall(re.split(r"^#", between, flags=re.M)[0])
        self.output = None
        if following and not between.strip() and "output" in dict(WORD.findall(following["words"])):
            self.output = following["code"]

    def commands(self):
        return [line[2:] for line in self.code.splitlines() if line.startswith("$ ")]


def same(expected, got):
    pattern = "".join(r"(?:.*\n)*" if line.strip() == "…" else re.escape(line.rstrip()) + r"\n" for line in expected.splitlines())
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in got.splitlines())) is not None


class Runner:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.environment = dict(os.environ, LC_ALL="C.UTF-8")
        if options.prefix:
            prefix = pathlib.Path(options.prefix).resolve()
            self.environment["PATH"] = f"{prefix}/bin:{self.environment['PATH']}"
            self.environment["LD_LIBRARY_PATH"] = f"{prefix}/lib"
            (folder / "prefix").symlink_to(prefix)
        if options.python:
            self.environment["PATH"] = f"{pathlib.Path(options.python).absolute().parent}:{self.environment['PATH']}"

    def command(self, arguments):
        try:
            return subprocess.run(arguments, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(arguments, 124, "", f"not done after {SECONDS} s")

    def compiled(self, block):
        name = f"block_{block.line}"
        source = self.folder / f"{name}.{block.language}"
        source.write_text(block.code, encoding="utf-8")
        compiler = ["cc", "-std=c11"] if block.language == "c" else ["c++", "-std=c++11"]
        built = self.command([*compiler, "-Wall", "-Wextra", "-Werror", source.name, "-o", name, "-Iprefix/include", "-Lprefix/lib",
                              "-lretrograd"])
        return built if built.returncode else self.command([f"./{name}"])

    def python(self, block):
        interpreter = self.options.torch_python if needs_torch(block) else self.options.python
        source = self.folder / f"block_{block.line}.py"
        source.write_text(block.code, encoding="utf-8")
        return self.command([str(pathlib.Path(interpreter or sys.executable).absolute()), source.name])

    def run(self, block):
        """What is wrong, or nothing."""
        if block.transcript:
            for command in block.commands():
                result = self.command(["bash", "-c", command])
                if result.returncode not in (0, 1, 2):  # refusals are shown, too; a crash or a missing program is no answer
                    return f"{command}: exit status {result.returncode}\n{result.stdout}{result.stderr}"
                if not result.stdout + result.stderr:
                    return f"{command}: printed nothing"
            return ""
        if block.language in ("c", "cpp"):
            result = self.compiled(block)
        elif block.language == "python":
            result = self.python(block)
        else:
            result = self.command(["bash", "-euo", "pipefail", "-c", block.code])
        if result.returncode != int(block.words.get("status", "0")):
            return f"exit status {result.returncode}\n{result.stdout}{result.stderr}"
        if block.output is not None and not same(block.output, result.stdout):
            return f"the page shows\n{block.output}and it prints\n{result.stdout}{result.stderr}"
        for promise in block.promised:
            if promise not in result.stdout:
                return f"the page says that it prints {promise!r}; it prints\n{result.stdout}"
        return ""


def needs_torch(block):
    return block.language == "python" and re.search(r"^\s*(?:import|from) (?:torch|retrograd\.torch)\b", block.code, re.M) is not None


def run_page(options, page, folder, root):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for entry in root.iterdir():  # folders only: a block that writes a file must not write through a link
        if entry.is_dir() and not entry.name.startswith(".") and entry.name != "build":
            (folder / entry.name).symlink_to(entry)
    runner = Runner(options, folder)
    text = page.read_text(encoding="utf-8")
    ran, failed, left = 0, [], []
    for block in (Block(text, match) for match in FENCE.finditer(text)):
        where = f"{page.relative_to(root)}:{block.line}"
        if name := block.words.get("file"):
            if "/" in name:
                failed.append(f"{where}: file is {name}, expected a name without folders")
                continue
            (folder / name).write_text(block.code, encoding="utf-8")
        if not (block.transcript or block.language in ("c", "cpp", "python", "sh")):
            continue
        if "no-run" in block.words:
            left.append(f"{where}: not run: {block.words['no-run']}")
            if not block.words["no-run"]:
                failed.append(f"{where}: no-run has no reason")
        elif needs_torch(block) and not options.torch_python:
            left.append(f"{where}: skipped: no environment with PyTorch was named")
        elif block.language in ("c", "cpp") and not re.search(r"\bint main\(", block.code):
            failed.append(f'{where}: no main: complete it, or mark it no-run="why"')
        else:
            ran += 1
            if what := runner.run(block):
                failed.append(f"{where}: {what}")
    return ran, failed, left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".", help="the checkout")
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--prefix", help="where the package is installed")
    parser.add_argument("--python", help="an interpreter that has the package")
    parser.add_argument("--torch-python", help="one that has PyTorch as well")
    parser.add_argument("pages", nargs="+")
    options = parser.parse_args()
    root, scratch = pathlib.Path(options.root).resolve(), pathlib.Path(options.scratch).resolve()
    total, failures = 0, []
    for name in options.pages:
        page = pathlib.Path(name).resolve()
        ran, failed, left = run_page(options, page, scratch / str(page.relative_to(root)).replace("/", "_"), root)
        total, failures = total + ran, failures + failed
        print(f"{page.relative_to(root)}: {ran} blocks run, {len(failed)} failed", *left, *failed, sep="\n  ", flush=True)
    print(f"{total} code blocks of {len(options.pages)} pages run, {len(failures)} failed")
    return 1 if failures or not total else 0


if __name__ == "__main__":
    sys.exit(main())
