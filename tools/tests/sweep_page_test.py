#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`retrograd sweep --html`: the page holds every figure, asks no network, and a browser shows it: sweep_page_test.py PROGRAM"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def dom_of(browser, page, folder):
    """What the page's script has made of it."""
    return subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                           "--virtual-time-budget=5000", "--dump-dom", page.as_uri()],
                          capture_output=True, text=True, timeout=120, check=True).stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "sweep.html")
        subprocess.run([sys.argv[1], "sweep", "--seed", "3", "--count", "8", "--seconds", "0.0005", "--every-implementation",
                        "--html", page], check=True, stdout=subprocess.DEVNULL)
        text = page.read_text(encoding="utf-8")
        found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
        check(found, "the page has no data")
        figures = json.loads(found[1])["figures"]
        check(len(figures) >= 8, f"{len(figures)} figures of 8 problems")
        addresses = set(re.findall(r"https?://[^\"' )]+", text.replace(found[1], ""))) - {"http://www.w3.org/2000/svg"}
        check(not addresses, f"the page names addresses: {addresses}")
        browser = shutil.which("chromium")
        if browser is None:
            print("skipped: no chromium here; the page was not shown")
            sys.exit(SKIPPED)
        dom = dom_of(browser, page, folder)
        check(f"{len(figures)} of {len(figures)} figures" in dom, "the script did not count the figures")
        body = re.search(r'<tbody id="body">(.*?)</tbody>', dom, re.DOTALL)[1]
        check(body.count("<tr") == len(figures), f"{body.count('<tr')} rows for {len(figures)} figures")
        check(figures[0]["problem"] in body, "the first problem is not in the table")
        check(dom.count("<svg") == 2 and dom.count("<rect") > 10, "two histograms are expected: roofline shares and regret")


main()
