"""A real Chromium, driven over the pipe that it has for its own developer tools, so that no driver is needed."""

import base64
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}


class Chromium:
    """A browser with one page. ``events`` are all that it reported, in their order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.events: list[dict[str, Any]] = []
        self._last = 0
        self._session = ""

    def __enter__(self) -> "Chromium":
        assert PROGRAM is not None
        theirs, ours = os.pipe()
        answers, writes = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += [f"--user-data-dir={self._folder}", "--force-device-scale-factor=1", "--hide-scrollbars"]
        command = f"exec {shlex.join([PROGRAM, *options, 'about:blank'])} 3<&{theirs} 4>&{writes}"
        with (self._folder / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(["bash", "-c", command], pass_fds=(theirs, writes), stdout=log, stderr=log)
        os.close(theirs)
        os.close(writes)
        self._to, self._from, self._rest = ours, answers, b""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._to)
        self._process.terminate()
        self._process.wait(30)
        os.close(self._from)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of Chromium's DevTools protocol, and return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._last:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result
            self.events.append(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._from, 1 << 20)
            assert read, "Chromium ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, page: Path, *, width: int = 1280, height: int = 900, theme: str = "light", media: str = "") -> None:
        """Open a page in a window of this size, in a theme, and wait until it is loaded."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        theme_ = [{"name": "prefers-color-scheme", "value": theme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=theme_)
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript in the page, and return its value."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys one after another."""
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
                code = KEYS[key]
                self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def screenshot(self, file: Path) -> None:
        """Write a picture of the whole page."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12_000), "scale": 1}
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> Sequence[str]:
        """Return what the console and the policy of the page complained about."""
        return [
            json.dumps(event["params"])
            for event in self.events
            if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        ]

    def requests(self) -> Sequence[str]:
        """Return the addresses that the page asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
