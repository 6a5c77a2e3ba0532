#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header of include/ is installed and compiles alone, first, and twice, as C11 and as C++11 without a warning.

Usage: check_headers.py SOURCE_INCLUDE INSTALLED_INCLUDE CC CXX
"""
import pathlib
import subprocess
import sys

source, installed, compilers = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:5]
headers = sorted(h.relative_to(source) for h in source.rglob("*.h"))
problems = []
for header in headers:
    # A name of CUDA's that a .cu file brings along: no header of ours may take it.
    program = f'#include "{header}"\n#include "{header}"\ntypedef struct {{ int x, y, z; }} dim3;\n'
    for compiler, language, standard in zip(compilers, ("c", "c++"), ("c11", "c++11")):
        command = [compiler, f"-std={standard}", "-x", language, "-Wall", "-Wextra", "-pedantic", "-Werror",
                   "-fsyntax-only", f"-I{installed}", "-"]
        result = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
        if result.returncode:
            problems.append(f"{header} as {standard}:\n{result.stderr}")
print("\n".join(problems) or f"{len(headers)} headers compile alone as C11 and C++11")
sys.exit(1 if problems or not headers else 0)
