"""Opens the status pages of a real job in headless Chromium: wide and narrow, dark and light, with and without scripts.

    bazel run //tests/admin:page_test -- [--images FOLDER]

Requires the Debian package chromium. FOLDER gets screenshots.
"""

import argparse
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from tests.admin.cluster import WAIT_SECONDS, Cluster, wait_until

WIDE = (1100, 900)
NARROW = (320, 700)
ARGUMENTS = argparse.Namespace()


class Browser:
    """Headless Chromium, controlled over a pair of pipes (the DevTools protocol). A context manager."""

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        from_us, self._write = os.pipe()
        self._read, to_us = os.pipe()

        def connect_pipes():
            # Chromium reads its commands from file 3 and writes to file 4.
            high_in, high_out = os.dup(from_us), os.dup(to_us)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        command = [shutil.which("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
                   f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(command, close_fds=False, preexec_fn=connect_pipes, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(from_us)
        os.close(to_us)
        self._buffer = b""
        self._count = 0
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = None
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, kind, error, trace):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(WAIT_SECONDS)
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    _session = None

    def call(self, method, **parameters):
        """Calls a method of the DevTools protocol and returns its result. Keeps the events that arrive meanwhile."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._buffer:
                read = os.read(self._read, 1 << 16)
                assert read, "Chromium ended"
                self._buffer += read
            text, self._buffer = self._buffer.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, url, size, scheme, scripts=True):
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1,
                  mobile=size[0] < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=url)
        wait_until(lambda: self.evaluate("document.readyState") == "complete", url)

    def screenshot(self, name):
        image = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if ARGUMENTS.images:
            with open(os.path.join(ARGUMENTS.images, name), "wb") as file:
                file.write(image)
        return image

    def problems(self):
        """Exceptions, blocked requests and error messages of the page."""
        kinds = ("Runtime.exceptionThrown", "Network.loadingFailed", "Log.entryAdded")
        found = [event for event in self.events if event.get("method") in kinds]
        # The browser asks for an icon, which the page does not have.
        return [event for event in found if "favicon" not in json.dumps(event)]


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(ARGUMENTS.server, ARGUMENTS.worker))
        cls.browser = cls.enterClassContext(Browser())
        cls.cluster.wait_for_step(100)
        wait_until(lambda: "2 of 2" in cls.cluster.get("server0", "/")[1], "the lead's page has both servers")
        wait_until(lambda: "thinwire_worker_test_accuracy_ratio" in cls.cluster.metrics("worker0"), "an epoch ends")
        time.sleep(3)  # a curve of some points looks better on the screenshot

    def url(self, name):
        return f"http://{self.cluster.admin[name]}/"

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
        step = "parseInt(document.querySelector('dd').textContent.replaceAll(',', ''))"
        self.browser.evaluate("window.notLoadedAgain = true")
        before = self.browser.evaluate(step)
        wait_until(lambda: self.browser.evaluate(step) > before, "the step rises")
        self.assertTrue(self.browser.evaluate("window.notLoadedAgain"))
        self.assertEqual(self.browser.problems(), [])
        requests = [event["params"]["request"]["url"] for event in self.browser.events
                    if event.get("method") == "Network.requestWillBeSent"]
        self.assertGreater(len(requests), 1)
        for request in requests:
            self.assertTrue(request.startswith(self.url("server0")), request)

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

    def test_z_the_page_says_when_the_server_is_gone(self):
        """Runs last, because it ends a server."""
        self.browser.open(self.url("server1"), WIDE, "light")
        age = "document.getElementById('age').textContent"
        wait_until(lambda: self.browser.evaluate(age) == "live", "live")
        self.cluster.processes["server1"].kill()
        wait_until(lambda: self.browser.evaluate(age).startswith("no answer for "), "the page says so")


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
