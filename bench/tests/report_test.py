# SPDX-License-Identifier: Apache-2.0
"""The report made from a small stored run: what the page says, and that the pictures are well formed."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "report"))

import alike  # noqa: E402
from goals import goals  # noqa: E402
from measure import environment, is_winograd_row, merge, suite_rows  # noqa: E402
from page import insert  # noqa: E402
from results import FAMILIES, Part, Row, family_of, geometric_mean, load  # noqa: E402

STORED = HERE / "stored"


class Results(unittest.TestCase):
    def test_the_faster_peer_counts(self):
        row = load(STORED, "suite-2t").of("rn50_3x3_56", "i")
        self.assertEqual((row.peer, row.variant), ("oneDNN", "reorders"))
        self.assertAlmostEqual(row.ratio, 4.2 / 3.0)

    def test_no_ratio_where_every_peer_declined(self):
        self.assertIsNone(load(STORED, "suite-2t").of("mbv2_dw3_28_c192", "i").ratio)

    def test_what_is_not_there_is_none(self):
        self.assertIsNone(load(STORED, "suite-1t"))

    def test_a_later_run_replaces_a_row(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(STORED, folder, dirs_exist_ok=True)
            later = pathlib.Path(folder, "suite-2t", "again.json")
            content = json.loads((STORED / "suite-2t" / "conv.json").read_text(encoding="utf-8"))
            content["rows"] = [dict(content["rows"][0], ms=1.5)]
            later.write_text(json.dumps(content), encoding="utf-8")
            part = load(folder, "suite-2t")
            self.assertEqual(part.of("rn50_3x3_56", "i").ms, 1.5)
            self.assertEqual(len(part.rows), len(load(STORED, "suite-2t").rows))

    def test_geometric_mean(self):
        self.assertAlmostEqual(geometric_mean([2, 8]), 4)
        self.assertIsNone(geometric_mean([]))


class Passes(unittest.TestCase):
    @staticmethod
    def content(ms, onednn, pytorch):
        stored = json.loads((STORED / "suite-2t" / "conv.json").read_text(encoding="utf-8"))
        fields = dict(stored["rows"][0], ms=ms, peak_percent=100 / ms)
        fields["peers"] = [{"name": "oneDNN", "ms": onednn, "variant": "plain"}, {"name": "PyTorch", **pytorch}]
        return dict(stored, rows=[fields])

    def test_the_least_median_of_everybody_counts(self):
        merged = merge([self.content(3.0, 8.0, {"ms": 5.0, "variant": "blas2"}),
                        self.content(3.3, 4.0, {"ms": 6.0, "variant": "blas1"})])
        row = Row(merged["rows"][0])
        self.assertEqual((row.ms, row.peer_ms, row.peer, row.peak), (3.0, 4.0, "oneDNN", 100 / 3.0))
        self.assertEqual([peer["ms"] for peer in merged["rows"][0]["peers"]], [4.0, 5.0])
        self.assertTrue(row.unstable)  # oneDNN took 8 and 4

    def test_passes_that_agree_are_stable(self):
        declined = {"declined": "no such type"}
        row = Row(merge([self.content(3.0, 4.4, declined), self.content(3.3, 4.0, declined)])["rows"][0])
        self.assertFalse(row.unstable)

    def test_a_doubtful_row_counts_neither_way(self):
        fields = merge([self.content(3.0, 4.0, {"declined": ""}), self.content(9.0, 4.0, {"declined": ""})])["rows"]
        text = goals({"suite-2t": Part({}, [Row(fields[0])])})
        self.assertIn("| × best peer | ≥ 0.95 × | 0 of 0 | – | rn50_3x3_56.i 1.33 × |", text)


class Families(unittest.TestCase):
    def test_problems(self):
        for problem, family in (
            ("conv input=4x64x56x56 weight=64x64x3x3 padding=1x1", "dense 3×3"),
            ("conv input=4x64x56x56 weight=256x64x1x1", "dense 1×1"),
            ("conv input=4x128x56x56 weight=128x128x3x3 stride=2x2 padding=1x1", "stride 2"),
            ("conv input=8x192x28x28 weight=192x1x3x3 groups=192 padding=1x1", "depthwise"),
            ("conv input=8x256x1000 weight=256x1x7 groups=256 padding=3", "depthwise 1-D and 3-D"),
            ("conv input=4x128x56x56 weight=128x4x3x3 groups=32", "few channels a group"),
            ("conv input=4x3x224x224 weight=64x3x7x7 stride=2x2", "stems and patches"),
            ("conv input=256x64x4x4 weight=64x64x3x3 padding=1x1", "big batch, tiny space"),
            ("conv input=512x128x1x1 weight=128x128x1x1", "big batch, tiny space"),
            ("conv input=4x1x16000 weight=512x1x10 stride=5", "stems and patches"),
            ("conv input=16x100x1x1 weight=100x512x4x4 transposed=1", "transposed"),
            ("conv input=2x256x33x33 weight=256x256x3x3 dilation=2x2", "dilated"),
            ("conv input=8x128x1024 weight=128x128x3 dilation=2", "1-D"),
            ("conv input=1x64x8x28x28 weight=64x64x3x3x3", "3-D"),
            ("conv input=4x128x28x28 weight=128x64x2x2 stride=2x2 transposed=1", "transposed"),
            ("conv input=2x2x7x7 weight=2x2x1x1", "small problems"),
            ("avgpool input=8x64x112x112 kernel=2x2", "average pooling"),
        ):
            self.assertEqual(family_of(problem), family, problem)
            self.assertIn(family, FAMILIES)


class Suites(unittest.TestCase):
    def test_only_the_winograd_part_allows_it(self):
        self.assertEqual(environment("winograd")["RETROGRAD_WINOGRAD"], "1")
        self.assertEqual(environment("suite")["RETROGRAD_WINOGRAD"], "0")

    def test_winograd_rows(self):
        root = HERE.parents[1]
        if not (root / "bench/shapes/conv.csv").exists():
            self.skipTest("bench/shapes/conv.csv is not there")
        names = [row["name"] for row in suite_rows(root, "conv", "") if is_winograd_row(row)]
        self.assertEqual(names, ["rn50_3x3_56", "rn50_3x3_28", "rn50_3x3_14"])


class Alike(unittest.TestCase):
    ROW = {"N": "2", "Cin": "6", "Cout": "9", "groups": "3", "spatial_in": "8x7", "kernel": "3x1", "stride": "2x1",
           "pad": "1x0", "dilation": "1x1"}

    def test_the_rows_are_in_the_suite(self):
        names = [row["name"] for row in suite_rows(HERE.parents[1], "conv", "")]
        self.assertEqual([name for name in alike.ROWS if name not in names], [])

    def test_problems(self):
        found = alike.problems(self.ROW)
        self.assertIn("input=2x6x8x7 grad_output=2x9x4x7 weight=9x2x3x1", found["plain"])
        self.assertIn("input=2x9x4x7 grad_output=2x6x8x7 weight=9x2x3x1", found["transposed"])
        self.assertIn("output_padding=1x0", found["transposed"])  # (4 - 1)·2 - 2 + 3 is 7, one short of 8
        self.assertIn("input=2x6x8x7@336x1x42x6", found["channels-last"])
        self.assertIn("padding=2x0 dilation=2x1", found["dilated"])
        self.assertNotIn("dilated", alike.problems(self.ROW | {"kernel": "1x1", "pad": "0x0"}))

    def test_figures_and_goals(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = [{"gflops": speed} for speed in (100, 80, 50, 80, 40, 100)]
            pathlib.Path(folder, "a~plain~transposed~channels-last.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
            found = alike.figures(folder)
        self.assertEqual(found, [("a", "i", {"transposed": 2.0, "channels-last": 2.5}),
                                 ("a", "w", {"transposed": 1.0, "channels-last": 0.8})])
        self.assertIn("| time an operation takes, transposed | ≤ 1.3 × | 1 of 2 | a.i 2.00 × | – |", goals({"alike": found}))


class Page(unittest.TestCase):
    def test_only_what_is_between_the_markers_changes(self):
        page = "# Title\n\nbefore\n<!-- begin: a -->\nold\n<!-- end: a -->\nafter\n"
        self.assertEqual(insert(page, "a", "new"), page.replace("old", "new"))

    def test_markers_are_added(self):
        self.assertEqual(insert("# Title\n", "a", "new"), "# Title\n\n<!-- begin: a -->\nnew\n<!-- end: a -->\n")

    def test_goals_name_the_rows_that_miss(self):
        text = goals({"suite-2t": load(STORED, "suite-2t")})
        self.assertIn("rn50_3x3_56.w 0.80 ×", text)
        self.assertNotIn("rn50_3x3_56.i", text)

    def test_the_whole_report(self):
        with tempfile.TemporaryDirectory() as folder:
            docs = pathlib.Path(folder, "docs")
            docs.mkdir()
            (docs / "performance.md").write_text("# Performance\n", encoding="utf-8")
            results = pathlib.Path(folder, "results")
            shutil.copytree(STORED, results)
            done = subprocess.run([sys.executable, str(HERE.parent / "report/main.py"), "--report-only", "--results",
                                   str(results), "--docs", str(docs)], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            page = (docs / "performance.md").read_text(encoding="utf-8")
            self.assertTrue(page.startswith("# Performance\n"))
            self.assertIn("| `rn50_3x3_56` | 3.000 | 85 % | 1.40 × | 5.000 |", page)
            self.assertIn("| `ap_2x2s2_56_c128` | 0.200 |", page)
            self.assertIn("### BF16 against our own FLOAT", page)
            for name in ("ratio", "roofline"):
                picture = ElementTree.parse(docs / "figures" / f"{name}.svg").getroot()
                texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
                self.assertIn("rn50_3x3_56", texts)
                self.assertIn("ap_2x2s2_56_c128", texts)
            # A row that no peer took has no ratio, but a share of the roofline.
            self.assertIn("mbv2_dw3_28_c192", texts)


if __name__ == "__main__":
    unittest.main()
