#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three lists must be one: what the library exports, what exports.txt says, what the headers declare.

Usage: check_exports.py LIBRARY INCLUDE CC LIST…  (the lists: exports.txt, and files of stubs if there are any)
"""
import pathlib
import re
import subprocess
import sys

library, include, compiler, lists = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
FUNCTION = r"\b((?:acl|infini|retrograd)\w*)\s*\("


def names_in(path):
    lines = (line.split("#")[0].strip() for line in pathlib.Path(path).read_text().splitlines())
    return [line for line in lines if line]


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


problems = []
ours = names_in(lists[0])
problems += [f"{name} is listed twice" for name in sorted({n for n in ours if ours.count(n) > 1})]
listed = {name for path in lists for name in names_in(path)}

symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
exported = {line.split()[-1] for line in symbols.splitlines()}
problems += [f"{name} is exported and not listed" for name in sorted(exported - listed)]
problems += [f"{name} is listed and not exported" for name in sorted(listed - exported)]

headers = sorted(include.rglob("*.h"))
declared = {name for h in headers for name in re.findall(FUNCTION, without_comments(h.read_text()))}
problems += [f"{name} is declared in a header and not listed" for name in sorted(declared - set(ours))]

# The compiler, not a pattern, says whether each listed function is declared.
program = "".join(f'#include "{h.relative_to(include)}"\n' for h in headers)
program += "void (*const functions[])(void) = {\n" + "".join(f"(void (*)(void)){n},\n" for n in sorted(ours)) + "};\n"
compiled = subprocess.run([compiler, "-std=c11", "-fsyntax-only", f"-I{include}", "-x", "c", "-"], input=program,
                          capture_output=True, text=True, check=False)
undeclared = re.findall(r"error: [^\n]*?['‘](\w+)['’] undeclared|undeclared identifier '(\w+)'", compiled.stderr)
problems += [f"{a or b} is listed and declared in no header" for a, b in undeclared]
if compiled.returncode and not undeclared:
    problems.append(compiled.stderr)

print("\n".join(problems) or f"{len(exported)} functions: exported, listed and declared")
sys.exit(1 if problems or not headers else 0)
