"""Checks the pages for people: every link leads to a file and a heading, and no page of docs/ has more than 300 lines."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent
LONGEST = 300
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages():
    folders = [ROOT, ROOT / "docs", ROOT / "docs" / "decisions"]
    return [page for folder in folders for page in sorted(folder.glob("*.md"))]


def lines_outside_code(page):
    code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield line


def anchors(page):
    """Returns the anchors that GitHub gives to the headings of a page."""
    found = set()
    for line in lines_outside_code(page):
        heading = re.match(r"#+ (.*)", line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).strip().lower()
        base = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        anchor, count = base, 0
        while anchor in found:
            count += 1
            anchor = f"{base}-{count}"
        found.add(anchor)
    return found


class PagesTest(unittest.TestCase):
    def test_links_lead_somewhere(self):
        checked, broken = 0, []
        for page in pages():
            text = "\n".join(re.sub(r"`[^`]*`", "", line) for line in lines_outside_code(page))
            for link in LINK.findall(text):
                if re.match(r"[a-z]+:", link):
                    continue
                checked += 1
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                    broken.append(f"{page.relative_to(ROOT)}: {link}")
        self.assertEqual(broken, [], "links to a file or heading that does not exist")
        self.assertGreater(checked, 400)

    def test_pages_are_short(self):
        lengths = {page.name: len(page.read_text(encoding="utf-8").splitlines()) for page in (ROOT / "docs").glob("*.md")}
        self.assertEqual({name: length for name, length in lengths.items() if length > LONGEST}, {}, f"pages above {LONGEST} lines")
        self.assertGreater(len(lengths), 30)


if __name__ == "__main__":
    unittest.main()
