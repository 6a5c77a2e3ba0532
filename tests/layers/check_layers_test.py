#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that check_layers.py can fail: trees with one offence each, and a legal one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("check_layers.py")


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        return subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)


class CheckLayers(unittest.TestCase):
    def refused(self, name, include, offence):
        result = run({name: f"#pragma once\n{include}"})
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(result.stdout.strip(), f"{name}:2: {offence}")

    def test_a_legal_tree_passes(self):
        result = run({
            "base/a.h": "#include <vector>\n#include <fmt/format.h>",
            "problem/a.h": '#include "base/status.h"',
            "kernels/cpu/a.h": '#include "base/dtype.h"\n#include "kernels/cpu/b.h"',
            "engines/cpu/a.cpp": '#include "kernels/cpu/a.h"\n#include "runtime/thread_pool.h"',
            "plan/a.cpp": '#include "engines/engine.h"\n#include "engines/registry.h"\n#include "plan/plan.h"',
            "api/acl/a.cpp": '#include "acl/acl.h"\n#include "plan/plan.h"',
        })
        self.assertEqual((result.returncode, result.stdout), (0, "6 files keep the include rule\n"))

    def test_each_offence_is_named(self):
        self.refused("base/a.h", '#include "problem/pass.h"', "base may not include problem/pass.h")
        self.refused("problem/a.h", '#include "runtime/device.h"', "problem may not include runtime/device.h")
        self.refused("runtime/a.h", '  #  include "problem/pass.h"', "runtime may not include problem/pass.h")
        self.refused("kernels/a.h", '#include "base/log.h"', "kernels may not include base/log.h")
        self.refused("engines/a.h", '#include "plan/plan.h"', "engines may not include plan/plan.h")
        self.refused("plan/a.h", '#include "engines/cpu/blocking.h"', "plan may not include engines/cpu/blocking.h")
        self.refused("api/acl/a.cpp", '#include "engines/engine.h"', "api may not include engines/engine.h")
        self.refused("problem/a.cpp", "#include <acl/acl.h>", "problem may not include acl/acl.h")
        self.refused("engines/a.cpp", '#include "infiniop.h"', "engines may not include infiniop.h")
        self.refused("base/a.cpp", '#include "../plan/plan.h"', "base may not include ../plan/plan.h")
        self.refused("misc/a.cpp", "#include <vector>", "misc may not include vector")

    def test_an_empty_tree_is_no_success(self):
        self.assertEqual(run({}).returncode, 1)


unittest.main()
