# SPDX-License-Identifier: Apache-2.0
"""The report made from a small stored run: what the page says, and that the pictures are well formed."""
import csv
import importlib.util
import json
import os
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
import figures  # noqa: E402
import scaling  # noqa: E402
from goals import goals  # noqa: E402
from measure import Run, environment, is_winograd_row, merge, suite_rows  # noqa: E402
from page import insert  # noqa: E402
from results import FAMILIES, Part, Row, family_of, geometric_mean, load  # noqa: E402

STORED = HERE / "stored"


class Scaling(unittest.TestCase):
    ROWS = [(name, axis, scale, (3e-5 if name == "1 × 1" and scale == 1 else 1e-5) * scale * (1.5 if axis == "channels" and scale == 1024 else 1))
            for name, axis, scale, _ in scaling.problems()]

    def test_every_problem_has_three_decades(self):
        calls = list(scaling.problems())
        self.assertEqual(len(calls), len(scaling.PROBLEMS) * 2 * 11)
        self.assertEqual(calls[10][3], "conv input=1024x16x28x28 weight=16x16x3x3 padding=1x1")
        self.assertEqual(calls[21][3], "conv input=1x8192x28x28 weight=16x8192x3x3 padding=1x1")

    def test_the_largest_deviation_of_short_calls_is_told_apart(self):
        told = scaling.report(scaling.series(self.ROWS))
        self.assertIn("batch     1 × 1            all  3.00 at x 1 (0.03 ms); above 0.1 ms  1.00 at", told)
        self.assertIn("largest deviation above 0.1 ms: 1.50, dense 3 × 3, channels x 1024", told)

    def test_the_picture_is_well_formed(self):
        root = ElementTree.fromstring(scaling.picture(scaling.series(self.ROWS), "a < b"))
        self.assertEqual(len(root.findall("{*}polyline")), 12)


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


class Settings(unittest.TestCase):
    """The part `sweep`: a program of ours stands in for `retrograd` and writes what it was asked for."""
    PROGRAM = """#!/usr/bin/env python3
import json, os, sys
words = sys.argv[1:]
drawn, peers = words[0] == "sweep", [words[i + 1] for i, word in enumerate(words) if word == "--peer"]
unit, scale = ("us", 1000) if drawn else ("ms", 1)
times = [{"name": "oneDNN", unit: 6 * scale, "variant": "plain"}, {"name": "PyTorch", "declined": "no such type"}]
fields = {"family": "dense", "name": "row", "chosen": "a", "pass": "all", "ms": 4, "peers": times, "problem": "conv input=1 " + str(drawn),
          "implementations": [{"name": "b", "us": 1}, {"name": "a", "us": 12 * scale}]}
facts = {"words": words, "isa": os.environ.get("RETROGRAD_CPU_ISA"), "onednn": os.environ.get("ONEDNN_MAX_CPU_ISA"),
         "peers": [{"name": "oneDNN", "version": "3.13.2 TBB"}, {"name": "PyTorch", "version": "2.15"}]}
with open(words[words.index("--json") + 1], "w") as out:
    json.dump({**facts, "figures" if drawn else "rows": [fields]}, out)
"""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        program = self.folder / "tools/retrograd"
        program.parent.mkdir()
        program.write_text(self.PROGRAM, encoding="utf-8")
        program.chmod(0o755)
        self.run_of = Run(HERE.parents[1], self.folder, "/a python/bin/python", self.folder / "results", "^rn50_3x3_56$|^ap_2x2s2_56_c128$", 0.1, 1,
                          True, float("inf"))

    def measured(self, wanted, seeds=(7,)):
        figures.measure(self.run_of, 2, seeds, 300, wanted)
        files = sorted((self.folder / "results/sweep").glob("*.json"))
        return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}

    def test_what_is_run(self):
        found = self.measured("", (7, 8))
        settings = {"f32": "iwa", "bf16": "iwa", "f16": "iwa", "f32-avx2": "iwa", "f32-channels-last": "a", "bf16-channels-last": "a"}
        self.assertEqual(set(found), {f"{setting}~drawn~{seed}" for setting in (*settings, "f32-forward", "f32-pooling") for seed in (7, 8)}
                         | {f"{setting}~conv~" for setting in settings} | {"f32-pooling~avgpool~"})
        for stem, content in found.items():
            line = " ".join(content["words"])
            self.assertEqual((content["isa"], content["onednn"]), ("avx2", "AVX2") if "avx2" in stem else (None, None), stem)
            self.assertEqual("--layout channels-last" in line, "channels-last" in stem, stem)
            self.assertIn(f"--dtype {stem.split('-')[0].split('~')[0]}", line)
            self.assertEqual("--forward" in line, "forward" in stem, stem)
            self.assertIn("--threads 2", line)
            self.assertIn("--peer '/a python/bin/python'", line)
            if "drawn" in stem:
                self.assertIn(f"sweep --seed {stem[-1]} --count 300", line)
            elif stem.startswith("f32-p"):
                self.assertIn("avgpool.csv", line)
            else:
                self.assertIn(f"--passes {'i,w,all' if settings[stem.split('~')[0]] == 'iwa' else 'all'}", line)

    def test_what_is_there_is_kept(self):
        self.measured("^f32$")
        (self.folder / "tools/retrograd").write_text("#!/bin/sh\nexit 2\n", encoding="utf-8")
        self.measured("^f32$")
        with self.assertRaises(SystemExit):
            self.measured("^bf16$")

    def test_the_report(self):
        self.measured("^f32$")
        done = subprocess.run([sys.executable, str(HERE.parent / "report/main.py"), "--report-only", "--parts", "sweep", "--results",
                               str(self.folder / "results"), "--docs", str(self.folder / "no_docs")], capture_output=True, text=True, check=True)
        self.assertIn("oneDNN 3.13.2 TBB; PyTorch 2.15\n", done.stdout)
        self.assertRegex(done.stdout, r"f32 +drawn +1 +0.50 +0.50 +1\n")
        self.assertRegex(done.stdout, r"f32 +suite +1 +1.50 +1.50 +0\n")
        self.assertIn('0.500  all          "conv input=1 True"', done.stdout)
        with open(self.folder / "results/sweep.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["source"], row["us"], row["peer_us"], row["ratio"], row["peer"]) for row in rows],
                         [("conv", "4000", "6000", "1.5", "oneDNN"), ("drawn", "12000", "6000", "0.5", "oneDNN")])
        self.assertFalse((self.folder / "no_docs").exists(), "figures of a sweep are not for the page")

    def test_a_row_without_peers_has_no_ratio(self):
        rows = [{"setting": "f16", "source": "drawn", "ratio": None, "pass": "all", "problem": ""}]
        self.assertIn("no peer took any of 1 rows", "\n".join(figures.summary(rows)))

    def test_unknown_parts_are_refused(self):
        done = subprocess.run([sys.executable, str(HERE.parent / "report/main.py"), "--parts", "sweeps"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--parts: sweeps is not one of suite", done.stderr)

    def test_the_python_of_the_peers(self):
        code = "import sys; sys.path.insert(0, sys.argv[1]); import main; print(main.PYTHONS['pypi'])"
        for variables, expected in (({}, "build/peers/bin/python"), ({"RETROGRAD_PEERS_VENV": "/kept"}, "/kept/bin/python")):
            environment = {key: value for key, value in os.environ.items() if key != "RETROGRAD_PEERS_VENV"} | variables
            done = subprocess.run([sys.executable, "-c", code, str(HERE.parent / "report")], env=environment, capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout.strip(), expected)


class Gpu(unittest.TestCase):
    """What bench/gpu/report.py makes of the files of against_pytorch.py and of `retrograd sweep --csv`."""

    def setUp(self):
        spec = importlib.util.spec_from_file_location("gpu_report", HERE.parent / "gpu/report.py")
        self.report = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.report)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def file(self, text):
        path = self.folder / "rows.csv"
        path.write_text(text, encoding="utf-8")
        return path

    def test_drawn_rows(self):
        path = self.file("row,type,ours_ms,torch_ms,ratio,percent_of_copy,difference,problem\n"
                         "dense,fp16,2,1,0.5,10,0,conv input=1x2x3 | i 1 2\ndepthwise,fp32,1,8,8,10,0,conv input=1x2x4\n")
        text = self.report.drawn_markdown(self.report.drawn_rows(path))
        self.assertIn("| all | 2 | 2.00 | 0.50 | 0.50 | 50 % | – | – | – | – | – | 50 % |", text)
        self.assertIn("| fp32 | 1 | 8.00 |", text)
        self.assertIn("Below 0.95 ×: 1", text)
        self.assertIn("- 0.50 ×, 2.000 ms: `conv input=1x2x3`\n", text)

    def test_none_is_slow(self):
        self.assertIn("None is below 0.95 ×.", self.report.drawn_markdown([("dense", "fp16", 1.0, 2.0, "conv")]))

    def test_swept_rows(self):
        path = self.file("seed,index,family,pass,implementation,chosen,measured_us,predicted_us,operations,bytes,launches,calls,peer,peer_us,problem\n"
                         "1,0,dense,all,a,1,2000,1,1,1,1,1,PyTorch,1000,conv input=1x2x3 dtype=bf16\n"
                         "1,0,dense,all,b,0,1000,1,1,1,1,1,PyTorch,1000,conv input=1x2x3 dtype=bf16\n"
                         "1,1,pool,all,a,1,1000,1,1,1,1,1,,,avgpool input=1x2x3\n"
                         "1,2,pool,all,a,1,1000,1,1,1,1,1,PyTorch,4000,avgpool input=1x2x4\n")
        self.assertEqual(self.report.swept_rows(path), [("dense", "bf16", 2.0, 0.5, "conv input=1x2x3 dtype=bf16"),
                                                        ("pool", "f32", 1.0, 4.0, "avgpool input=1x2x4")])

    def test_the_suite(self):
        rows = self.report.read(self.file("row,type,ours_ms,torch_ms,ratio,percent_of_copy,difference,problem\n"
                                          "a,fp32,1,2,2,50,0,x\na,fp16-nhwc,1,0.5,0.5,25,0,x\n"))
        self.assertIn("| **all** | 2 | 1.00 × | 0.50 × | 1 |", self.report.summary(rows))
        self.assertIn("| a | 1.000, 2.00 ×, 50 % | – | – | 1.000, 0.50 ×, 25 % |", self.report.every_row(rows))
        ElementTree.fromstring(self.report.picture(rows))


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
            self.assertIn("| dense 3×3 | 1 | 1.40 × (1.40 ×) |", page)
            rows = (docs / "performance_rows.md").read_text(encoding="utf-8")
            self.assertIn("| `rn50_3x3_56` | 3.000 | 85 % | 1.40 × | 5.000 |", rows)
            self.assertIn("| `ap_2x2s2_56_c128` | 0.200 |", rows)
            self.assertIn("### BF16 against our own FLOAT", rows)
            for name in ("ratio", "roofline"):
                picture = ElementTree.parse(docs / "figures" / f"{name}.svg").getroot()
                texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
                self.assertIn("rn50_3x3_56", texts)
                self.assertIn("ap_2x2s2_56_c128", texts)
            # A row that no peer took has no ratio, but a share of the roofline.
            self.assertIn("mbv2_dw3_28_c192", texts)


if __name__ == "__main__":
    unittest.main()
