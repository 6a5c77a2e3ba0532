#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every link and picture of the built site leads to a file of it, and to a heading there. Usage: check_site.py FOLDER"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = {"", "__top"}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name"):
                self.ids.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in root.rglob("*.html")}
    wrong, outside = [], set()
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links begin at the server's root
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                outside.add(link)
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                wrong.append(f"{path.relative_to(root)}: {link} does not exist")
            elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
                wrong.append(f"{path.relative_to(root)}: {link}: no such heading")
    print("\n".join(sorted(set(wrong))) or f"{len(pages)} pages of the site, {sum(len(p.links) for p in pages.values())} links lead somewhere; "
          f"{len(outside)} to the web are not looked at")
    return 1 if wrong or not pages else 0


sys.exit(main())
