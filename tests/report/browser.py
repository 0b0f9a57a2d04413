"""Chromium, driven through two pipes: it opens a page, runs expressions in it, and remembers what went wrong."""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import time
from typing import Any

MISSING = shutil.which("chromium") is None
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
    "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip


class Browser:
    """One tab. `errors` are exceptions and messages on the console; `requests` are addresses that were asked for."""

    def __init__(self, profile):
        to_read, self.out = _pipe()
        self.into, to_write = _pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, to_read, 3), (os.POSIX_SPAWN_DUP2, to_write, 4),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]  # fmt: skip
        command = ["chromium", *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self.process = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
        os.close(to_read)
        os.close(to_write)
        self.numbers, self.rest, self.session = itertools.count(1), b"", None
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def open(self, address, width=1200, height=900, dark=False, scripts=True, paper=False):
        """Load a page, and wait until it is there; as it is on paper, if that is asked for."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme], media="print" if paper else "")
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=address)
        for _ in range(200):
            ready = self.run("location.href !== 'about:blank' && document.readyState")
            if ready == "complete":
                return
            time.sleep(0.05)
        raise TimeoutError(address)

    def run(self, expression) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def picture(self, path):
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=size | {"scale": 1})["data"]
        path.write_bytes(base64.b64decode(data))

    def call(self, method, **given) -> Any:
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": given}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._remember(answer)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        finally:
            os.close(self.out)
            os.close(self.into)
            os.waitpid(self.process, 0)

    def _remember(self, event):
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.errors.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])

    def _receive(self):
        while b"\0" not in self.rest:
            if not select.select([self.into], [], [], 60)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.into, 1 << 16)
            if not piece:
                raise ConnectionError("the browser has gone")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)


def _pipe():
    """Two ends with high numbers: 3 and 4 are to be the browser's."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends]
    for end in ends:
        os.close(end)
    return high
