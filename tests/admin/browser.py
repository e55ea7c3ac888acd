"""Headless Chromium for tests of pages. Requires the Debian package chromium."""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile

from tests.admin.cluster import WAIT_SECONDS, wait_until

WIDE = (1100, 900)
NARROW = (320, 700)


class Browser:
    """Headless Chromium, controlled over a pair of pipes (the DevTools protocol). A context manager.

    IMAGES is the folder of the screenshots, or None.
    """

    def __init__(self, images=None):
        self._images = images

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
        if self._images:
            with open(os.path.join(self._images, name), "wb") as file:
                file.write(image)
        return image

    def problems(self):
        """Exceptions, blocked requests and error messages of the page."""
        kinds = ("Runtime.exceptionThrown", "Network.loadingFailed", "Log.entryAdded")
        found = [event for event in self.events if event.get("method") in kinds]
        # The browser asks for an icon, which the page does not have.
        return [event for event in found if "favicon" not in json.dumps(event)]
