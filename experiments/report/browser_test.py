"""Opens a report with every kind of figure in headless Chromium: wide and narrow, dark and light, and as a printed page.

    bazel run //experiments/report:browser_test -- [--images FOLDER]

Requires the Debian package chromium. FOLDER gets screenshots.
"""

import argparse
import base64
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from tests.admin.browser import NARROW, WIDE, Browser

HERE = pathlib.Path(__file__).parent
ARGUMENTS = argparse.Namespace()
# The number of pairs of overlapping labels in the frontiers, and the number of labels.
OVERLAPS = """(() => {
  let labels = 0, overlaps = 0;
  for (const svg of document.querySelectorAll("svg[aria-label='The frontier']")) {
    const boxes = [...svg.querySelectorAll("text")].filter((text) => text.style.fontSize === "8px").map((text) => text.getBoundingClientRect());
    labels += boxes.length;
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
      if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom) overlaps += 1;
    }));
  }
  return [overlaps, labels];
})()"""


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        for program in ("synthetic_results.py", "report.py"):
            subprocess.run([sys.executable, HERE / program, folder], check=True)
        cls.url = (pathlib.Path(folder) / "report.html").as_uri()
        cls.browser = cls.enterClassContext(Browser(ARGUMENTS.images))

    def test_the_report_fits_every_screen(self):
        backgrounds, plates = set(), set()
        count = 0
        for size, width in ((WIDE, "wide"), (NARROW, "narrow")):
            for scheme in ("light", "dark"):
                self.browser.open(self.url, size, scheme, scripts=False)
                self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), size[0])
                backgrounds.add((scheme, self.browser.evaluate("getComputedStyle(document.body).backgroundColor")))
                plates.add(self.browser.evaluate("getComputedStyle(document.querySelector('.plate')).backgroundColor"))
                self.assertGreater(len(self.browser.screenshot(f"report-{width}-{scheme}.png")), 5000)
                self.assertEqual(self.browser.problems(), [])
                count += 1
        self.assertEqual(count, 4)
        self.assertEqual(len(backgrounds), 2)
        self.assertEqual(plates, {"rgb(255, 255, 255)"})

    def test_labels_of_a_frontier_do_not_overlap(self):
        self.browser.open(self.url, WIDE, "light")
        self.assertEqual(self.browser.evaluate(OVERLAPS), [0, 5])  # three names, and the accuracies of two cases below the figure

    def test_the_report_prints(self):
        self.browser.open(self.url, WIDE, "dark")
        document = base64.b64decode(self.browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
        self.assertGreater(len(re.findall(rb"/Type */Page\b", document)), 4)
        self.assertEqual(self.browser.problems(), [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", help="the folder of the screenshots")
    parser.parse_args(namespace=ARGUMENTS)
    if shutil.which("chromium") is None:
        sys.exit("browser_test: chromium is not installed (expected the Debian package chromium)")
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
