#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages for mkdocs from the pages of the checkout. Usage: make_pages.py ROOT FOLDER

docs/ is copied, and the pages of the root beside it (README.md is the first page). A link to another file of the checkout
becomes a link to a page that shows the file, one to a folder a page that lists it: the site needs no address of a
repository. What Python-Markdown reads differently from GitHub is put in its way: blank lines before lists and tables, and no
words behind the language of a code block."""
import pathlib
import posixpath
import re
import shutil
import sys

ROOT_PAGES = {"README.md": "index.md", "README.zh-CN.md": "README.zh-CN.md", "HACKING.md": "HACKING.md",
              "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md", "bench/README.md": "bench.md"}
LINK = re.compile(r"(\[[^\]]*\]\()([^()\s]+)(\))")
FENCE = re.compile(r"^(```.*?^```)[ ]*$", re.M | re.S)
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".cu": "cpp", ".py": "python", ".sh": "sh", ".yml": "yaml", ".cmake": "cmake"}


class Site:
    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.shown = set()  # files and folders that have a page of their own already

    def page_of(self, target):
        """Where the site has `target`, a path below the root, from the site's first folder."""
        name = target.as_posix()
        if name in ROOT_PAGES:
            return ROOT_PAGES[name]
        if target.parts[:1] == ("docs",):
            return posixpath.join(*target.parts[1:]) if len(target.parts) > 1 else "index.md"
        self.show(target)
        return f"files/{name}/index.md" if (self.root / target).is_dir() else f"files/{name}.md"

    def show(self, target):
        if target in self.shown:
            return
        self.shown.add(target)
        path = self.root / target
        if path.is_dir():
            names = sorted(p.name for p in path.iterdir() if not p.name.startswith((".", "__")))
            text = f"# {target}\n\n" + "\n".join(f"- `{name}`" for name in names) + "\n"
            page = self.folder / "files" / target / "index.md"
        else:
            language = LANGUAGES.get(path.suffix, "text")
            text = f"# {target}\n\n~~~~{language}\n{path.read_text(encoding='utf-8')}~~~~\n"
            page = self.folder / "files" / f"{target}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")

    def rewrite(self, source, destination, text):
        def relink(match):
            path, mark, heading = match[2].partition("#")
            if re.match(r"[a-z]+:", match[2]) or not path:
                return match[0]
            target = (self.root / source.parent / path).resolve().relative_to(self.root)
            page = posixpath.relpath(self.page_of(target), posixpath.dirname(destination) or ".")
            return f"{match[1]}{page}{mark}{heading}{match[3]}"

        parts = FENCE.split(text)
        for i, part in enumerate(parts):
            if part.startswith("```"):
                parts[i] = re.sub(r"\A```(\w*).*", r"```\1", part)
            else:
                parts[i] = with_blank_lines(LINK.sub(relink, part))
        return "".join(parts)


def with_blank_lines(text):
    """CommonMark lets a list or a table follow its paragraph directly, Python-Markdown does not."""
    lines, done = text.split("\n"), []
    for line in lines:
        before = done[-1] if done else ""
        begins_list = re.match(r"(- |\d+\. )", line) and not re.match(r"(- |\d+\. |  |$)", before)
        begins_table = line.startswith("|") and not before.startswith("|") and before
        if begins_list or begins_table:
            done.append("")
        done.append(line)
    return "\n".join(done)


def main():
    root, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    site = Site(root, folder)
    pages = {pathlib.Path(source): page for source, page in ROOT_PAGES.items()}
    for file in sorted((root / "docs").rglob("*")):
        if file.is_file():
            pages[file.relative_to(root)] = file.relative_to(root / "docs").as_posix()
    for source, page in pages.items():
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = site.rewrite(source, page, (root / source).read_text(encoding="utf-8"))
            (folder / page).write_text(text, encoding="utf-8")
        else:
            shutil.copy(root / source, folder / page)
    print(f"{len(pages)} pages and pictures, {len(site.shown)} files that they name")


main()
