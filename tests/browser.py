"""A real browser without a window, told what to do over the pipes of its DevTools protocol."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Programs that understand the protocol, the first that is found is taken."""

FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)

HEIGHT = 900

PATIENCE = 120.0
"""Seconds without a word after which the browser is given up."""

FACTS = """(() => {
  const root = document.documentElement;
  const scrolls = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
  const boxed = (e) => {
    for (let at = e.parentElement; at && at !== document.body; at = at.parentElement)
      if (scrolls(at)) return true;
    return false;
  };
  const beyond = [...document.body.querySelectorAll("*")].filter(
    (e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !boxed(e));
  return {
    window: root.clientWidth,
    width: Math.max(root.scrollWidth, document.body.scrollWidth),
    beyond: beyond.slice(0, 5).map((e) => e.outerHTML.slice(0, 120)),
    links: [...document.querySelectorAll("a[href]")].map((e) => e.getAttribute("href")),
    ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
    scripts: document.scripts.length,
    ground: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    text: document.body.innerText,
  };
})()"""
"""What is asked of every page.  An element may reach beyond the window in a box that scrolls."""


@dataclass(frozen=True)
class View:
    """What a browser makes of a page.

    Parameters
    ----------
    facts
        Widths in pixels, elements that stand out beyond the window, links, ids, colours, text.
    complaints
        What the console says, and exceptions.
    requests
        Every address that was asked for.
    """

    facts: dict[str, Any]
    complaints: list[str]
    requests: list[str]


class Browser:
    """One browser that shows one page after the other."""

    def __init__(self, write: int, read: int) -> None:
        self.write, self.read = write, read
        self.rest, self.number = b"", 0
        self.events: list[dict[str, Any]] = []
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to one command; what else comes meanwhile is kept as events."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            got = self._receive()
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return dict(got["result"])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read], [], [], PATIENCE)
            more = os.read(self.read, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("the browser has gone, or says nothing")
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\0")
        got: dict[str, Any] = json.loads(line)
        if "method" in got:
            self.events.append(got)
        return got

    def _named(self, name: str) -> Iterator[dict[str, Any]]:
        return (event["params"] for event in self.events if event["method"] == name)

    def view(self, path: Path, *, width: int = 1280, dark: bool = False) -> View:
        """Load a page from disk, and look at it.

        Parameters
        ----------
        width
            Of the window, in pixels.
        dark
            Whether the user likes pages dark.
        """
        self.liked(dark)
        self.sized(width)
        self.events.clear()
        failed = self.call("Page.navigate", url=path.as_uri()).get("errorText")
        if failed:
            raise RuntimeError(f"{path}: {failed}")
        while not any(self._named("Page.loadEventFired")):
            self._receive()
        return View(self.evaluate(FACTS), self.complaints(), self.requests())

    def liked(self, dark: bool) -> None:
        """Let the user like pages dark, or light."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def evaluate(self, script: str) -> Any:
        """Return what an expression gives on the page."""
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(str(got["exceptionDetails"]))
        return got["result"].get("value")

    def sized(self, width: int) -> None:
        """Make the window so wide, in pixels; below 600 it is that of a phone."""
        size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def complaints(self) -> list[str]:
        """Return what the console has said since the page was asked for, and exceptions."""
        called = self._named("Runtime.consoleAPICalled")
        found = [str([argument.get("value") for argument in event["args"]]) for event in called]
        for event in self._named("Runtime.exceptionThrown"):
            found.append(str(event["exceptionDetails"]["text"]))
        return found + [str(event["entry"]["text"]) for event in self._named("Log.entryAdded")]

    def requests(self) -> list[str]:
        """Return every address that was asked for since."""
        return [str(e["request"]["url"]) for e in self._named("Network.requestWillBeSent")]


def program() -> str | None:
    """Return the path of a browser, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def running(path: str) -> Iterator[Browser]:
    """Start a browser, and end it."""
    theirs_in, write = os.pipe()
    read, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The protocol wants the two pipes as descriptors 3 and 4.
        line = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        process = subprocess.Popen(
            ["bash", "-c", line, "browser", path, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            browser = Browser(write, read)
            yield browser
            browser.session = None
            browser.call("Browser.close")
            process.wait(20)
        finally:
            os.close(write)
            os.close(read)
            if process.poll() is None:
                process.kill()
                process.wait()
