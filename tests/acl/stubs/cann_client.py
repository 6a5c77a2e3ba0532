#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks every name of a list of acl stubs up in a library that was built with it, and calls each.

Usage: cann_client.py LIBRARY LIST EXPORTS
LIST is the file of names and answers, EXPORTS what the library has for real: those are looked up only. A function that is
not supported answers 207000 and leaves a sentence that names it; one that succeeds leaves none.
"""
import ctypes
import pathlib
import sys

NOT_SUPPORTED = 207000
library = ctypes.CDLL(sys.argv[1])
library.aclGetRecentErrMsg.restype = ctypes.c_char_p
real = {line.split("#")[0].strip() for line in pathlib.Path(sys.argv[3]).read_text().splitlines()}
answers = {}
for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
    words = line.split("#")[0].split()
    if not words:
        continue
    names = [words[1] + "GetWorkspaceSize", words[1]] if words[0] == "operator" else [words[0]]
    answers.update((name, words[-1]) for name in names)

problems = []
for name, answer in answers.items():
    function = getattr(library, name, None)
    if function is None:
        problems.append(f"{name} is not there")
    if function is None or name in real:
        continue
    library.aclGetRecentErrMsg()
    status = function(ctypes.c_void_p(), ctypes.c_size_t(7), ctypes.c_void_p())
    sentence = (library.aclGetRecentErrMsg() or b"").decode()
    if status != (0 if answer == "success" else NOT_SUPPORTED):
        problems.append(f"{name} answers {status}, the list says {answer}")
    if answer == "success" and sentence or answer == "unsupported" and not sentence.startswith(f"207000 {name}: "):
        problems.append(f"{name} leaves the message '{sentence}'")

for name in ("aclrtMemcpy2d", "aclnnAdd", "aclnnAddGetWorkspaceSize", "aclrtSetTsDevice"):
    if name in real or name not in answers:
        problems.append(f"{name} is no stub of the list")
if library.aclInit(None) != 0 or library.aclrtSetDevice(0) != 0 or library.aclFinalize() != 0:
    problems.append("the functions that are real no longer work")
print("\n".join(problems) or f"{len(answers)} names answer as the list says")
sys.exit(1 if problems else 0)
