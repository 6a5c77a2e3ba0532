#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include rule: what each layer of src/ may include. Usage: check_layers.py SRC; exits 1 and names each offence."""
import pathlib
import re
import sys

ALLOWED = {  # a folder with all below it, or a single header; every layer may include itself
    "base": [],
    "problem": ["base/"],
    "runtime": ["base/"],
    "kernels": ["base/checked.h", "base/dims.h", "base/dtype.h", "base/host_device.h"],
    "engines": ["base/", "problem/", "runtime/", "kernels/"],
    "plan": ["base/", "problem/", "runtime/", "engines/engine.h", "engines/registry.h", "engines/cost.h",
             "engines/machines.h", "engines/slices.h"],
    "api": ["base/", "problem/", "runtime/", "plan/"],
}
# The headers that hold vendors' types, ours among them: for api/ alone.
INTERFACES = r"(acl|aclnn|aclnnop|opdev|infiniop|retrograd)/|infini(core|rt|op)\.h$"

source, offences = pathlib.Path(sys.argv[1]), []
files = [f for f in sorted(source.rglob("*")) if f.suffix in (".h", ".cpp", ".cu", ".cuh", ".inc")]
for file in files:
    layer = file.relative_to(source).parts[0]
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not (match := re.match(r'\s*#\s*include\s*["<]([^">]+)', line)):
            continue
        path = match[1]
        ours = path.split("/")[0] in ALLOWED and "/" in path
        wrong = (".." in path or layer not in ALLOWED or (re.match(INTERFACES, path) and layer != "api") or
                 (ours and not any(path.startswith(a) for a in [layer + "/", *ALLOWED[layer]])))
        if wrong:
            offences.append(f"{file.relative_to(source)}:{number}: {layer} may not include {path}")
print("\n".join(offences) or f"{len(files)} files keep the include rule")
sys.exit(1 if offences or not files else 0)
