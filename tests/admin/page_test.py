"""Opens the status pages of a real job in headless Chromium: wide and narrow, dark and light, with and without scripts.

    bazel run //tests/admin:page_test -- [--images FOLDER]

Requires the Debian package chromium. FOLDER gets screenshots.
"""

import argparse
import shutil
import signal
import sys
import time
import unittest

from tests.admin.browser import NARROW, WIDE, Browser
from tests.admin.cluster import JOB, Cluster, wait_until

ARGUMENTS = argparse.Namespace()


class PageTestCase(unittest.TestCase):
    """Tests of the pages of `cluster`."""

    cluster: Cluster

    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(Browser(ARGUMENTS.images))

    def url(self, name):
        return f"http://{self.cluster.admin[name]}/"

    def check_state(self, state, alarm, image):
        """Opens the lead's page wide and narrow, light and dark, and compares the state in words and its color."""
        for size, width in ((WIDE, "wide"), (NARROW, "narrow")):
            for scheme in ("light", "dark"):
                self.browser.open(self.url("server0"), size, scheme)
                wait_until(lambda: self.browser.evaluate("document.querySelector('.state').textContent") == state, state)
                self.assertEqual(self.browser.evaluate("document.querySelector('.state').classList.contains('alarm')"), alarm)
                self.assertEqual(self.browser.evaluate("document.querySelectorAll('.problem').length > 0"), alarm)
                self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), size[0])
                self.browser.screenshot(f"{image}-{width}-{scheme}.png")


class PageTest(PageTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = cls.enterClassContext(Cluster(ARGUMENTS.server, ARGUMENTS.worker))
        cls.cluster.wait_for_step(100)
        wait_until(lambda: "2 of 2" in cls.cluster.get("server0", "/")[1], "the lead's page has both servers")
        wait_until(lambda: "thinwire_worker_test_accuracy_ratio" in cls.cluster.metrics("worker0"), "an epoch ends")
        time.sleep(3)  # a curve of some points looks better on the screenshot

    def test_every_page_fits_every_screen(self):
        backgrounds = set()
        count = 0
        for name in ("server0", "worker0"):
            for size, width in ((WIDE, "wide"), (NARROW, "narrow")):
                for scheme in ("light", "dark"):
                    self.browser.open(self.url(name), size, scheme)
                    wait_until(lambda: self.browser.evaluate("document.getElementById('age').textContent") == "live", "live")
                    self.assertEqual(self.browser.evaluate("innerWidth"), size[0])
                    self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), size[0],
                                         f"{name} {width}: the page is wider than the screen")
                    backgrounds.add((scheme, self.browser.evaluate("getComputedStyle(document.body).backgroundColor")))
                    image = self.browser.screenshot(f"{name[:-1]}-{width}-{scheme}.png")
                    self.assertGreater(len(image), 5000)
                    self.assertEqual(self.browser.problems(), [])
                    count += 1
        self.assertEqual(count, 8)
        self.assertEqual(len(backgrounds), 2)

    def test_the_page_is_live(self):
        self.browser.open(self.url("server0"), WIDE, "light")
        step = ("parseInt([...document.querySelectorAll('dt')].find((name) => name.textContent == 'step')"
                ".nextSibling.textContent.replaceAll(',', ''))")
        self.browser.evaluate("window.notLoadedAgain = true")
        wait_until(lambda: self.browser.evaluate(step) is not None, "the page has a step")
        before = self.browser.evaluate(step)
        wait_until(lambda: self.browser.evaluate(step) > before, "the step rises")
        self.assertTrue(self.browser.evaluate("window.notLoadedAgain"))
        self.assertEqual(self.browser.problems(), [])
        requests = [event["params"]["request"]["url"] for event in self.browser.events
                    if event.get("method") == "Network.requestWillBeSent"]
        self.assertGreater(len(requests), 1)
        for request in requests:
            self.assertTrue(request.startswith(self.url("server0")), request)

    def test_what_is_unfolded_stays_unfolded(self):
        self.browser.open(self.url("server0"), NARROW, "light")
        self.assertFalse(self.browser.evaluate("document.querySelector('details').open"))
        self.browser.evaluate("window.first = document.querySelector('details'); window.first.open = true; 0")
        wait_until(lambda: self.browser.evaluate("document.querySelector('details') !== window.first"), "the page refreshes")
        self.assertTrue(self.browser.evaluate("document.querySelector('details').open"))

    def test_a_healthy_job(self):
        self.check_state("training", False, "state-healthy")

    def test_a_table_keeps_its_scroll_position(self):
        self.browser.open(self.url("server0"), NARROW, "light")
        table = "[...document.querySelectorAll('.scroll')].find((t) => t.scrollWidth > t.clientWidth + 20)"
        self.browser.evaluate(f"window.first = {table}; window.first.scrollLeft = 20; 0")
        wait_until(lambda: self.browser.evaluate(f"{table} !== window.first"), "the page refreshes")
        self.assertEqual(self.browser.evaluate(f"{table}.scrollLeft"), 20)

    def test_without_scripts_the_page_has_its_tables(self):
        self.browser.open(self.url("server0"), NARROW, "light", scripts=False)
        self.assertGreaterEqual(self.browser.evaluate("document.querySelectorAll('table').length"), 5)
        self.assertEqual(self.browser.evaluate("document.getElementById('age').textContent"), "")

    def test_z_the_pages_say_when_the_server_is_gone(self):
        """Runs last, because it ends a server."""
        self.browser.open(self.url("server1"), WIDE, "light")
        age = "document.getElementById('age').textContent"
        wait_until(lambda: self.browser.evaluate(age) == "live", "live")
        self.cluster.processes["server1"].kill()
        wait_until(lambda: self.browser.evaluate(age).startswith("no answer for "), "the page says so")
        self.check_state("waiting for server 1", True, "state-dead-server")


class StatesTest(PageTestCase):
    """States of jobs of their own."""

    def start(self, *changes):
        """Starts the job of cluster.py with CHANGES, pairs of a text and its replacement."""
        job = JOB
        for old, new in changes:
            self.assertIn(old, job)
            job = job.replace(old, new)
        self.cluster = self.enterContext(Cluster(ARGUMENTS.server, ARGUMENTS.worker, job))

    def test_a_straggler(self):
        self.start(("workers: 2", "workers: 2 lease_seconds: 60"))
        self.cluster.wait_for_step(100)
        worker = self.cluster.processes["worker1"]
        self.addCleanup(worker.send_signal, signal.SIGCONT)  # before the cluster ends
        worker.send_signal(signal.SIGSTOP)
        self.check_state("waiting for worker 1", True, "state-straggler")

    def test_a_finished_job(self):
        self.start(("epochs: 1000", "epochs: 30"))
        self.check_state("finished", False, "state-finished")

    def test_a_diverged_job(self):
        self.start(("learning_rate: 0.05", "learning_rate: 1e30"))
        self.check_state("diverged", True, "state-diverged")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--images", help="the folder of the screenshots")
    parser.parse_args(namespace=ARGUMENTS)
    if shutil.which("chromium") is None:
        sys.exit("page_test: chromium is not installed (expected the Debian package chromium)")
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
