#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that check_statuses.py can fail: a small tree that passes, and one change for each thing it looks for."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("check_statuses.py")
HEADER = "INFINI_STATUS_SUCCESS = 0,\nINFINI_STATUS_BAD_PARAM = 3,\nINFINI_STATUS_UNUSED = 7\n"
SOURCE = "return INFINI_STATUS_BAD_PARAM;\n"
PAGE = """# Statuses
## infiniop
| status | cause | cure |
|---|---|---|
| 3 `INFINI_STATUS_BAD_PARAM` | cause | cure |

## Success
0: `INFINI_STATUS_SUCCESS`

## Never returned
7 `INFINI_STATUS_UNUSED`
"""


def run(header=HEADER, source=SOURCE, page=PAGE, chinese=PAGE):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"include/a.h": header, "src/a.cpp": source, "cmake/a.cmake": "", "docs/statuses.md": page,
                           "docs/statuses.zh-CN.md": chinese}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        result = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
        return result.returncode, result.stdout.strip()


class CheckStatuses(unittest.TestCase):
    def test_pages_that_list_everything_pass(self):
        self.assertEqual(run(), (0, "3 statuses, 1 of them returned, are on both pages"))

    def test_a_status_without_a_row(self):
        page = PAGE.replace("| 3 `INFINI_STATUS_BAD_PARAM` | cause | cure |\n", "")
        self.assertEqual(run(page=page), (1, "docs/statuses.md: 3 INFINI_STATUS_BAD_PARAM can be returned and has no row"))
        self.assertEqual(run(chinese=page), (1, "docs/statuses.zh-CN.md: 3 INFINI_STATUS_BAD_PARAM can be returned and has no row"))

    def test_a_row_without_a_cure(self):
        page = PAGE.replace("| cure |\n|", "|  |\n|", 1).replace("cause | cure |\n\n", "cause |  |\n\n")
        self.assertEqual(run(page=page), (1, "docs/statuses.md: 3 INFINI_STATUS_BAD_PARAM lacks a cause or a cure"))

    def test_a_status_that_is_returned_after_all(self):
        code, said = run(source=SOURCE + "return INFINI_STATUS_UNUSED;")
        self.assertEqual(code, 1)
        self.assertIn("docs/statuses.md: 7 INFINI_STATUS_UNUSED can be returned and has no row", said)

    def test_a_status_that_is_never_returned(self):
        page = PAGE.replace("7 `INFINI_STATUS_UNUSED`", "")
        self.assertEqual(run(page=page), (1, "docs/statuses.md: 7 INFINI_STATUS_UNUSED is never returned, and the page does not say so"))

    def test_a_wrong_number_and_a_missing_success(self):
        self.assertEqual(run(page=PAGE.replace("| 3 `", "| 4 `")), (1, "docs/statuses.md: 4 INFINI_STATUS_BAD_PARAM is not what a header says"))
        self.assertEqual(run(page=PAGE.replace("0: `INFINI_STATUS_SUCCESS`", "")),
                         (1, "docs/statuses.md: INFINI_STATUS_SUCCESS is not among those of success"))

    def test_a_tree_without_statuses_is_no_success(self):
        self.assertEqual(run(source="")[0], 1)


unittest.main()
