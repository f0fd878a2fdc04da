"""A real Chromium of Debian, under ``.servers``, not installed; driven by playwright."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.services.fetched import FETCHED

HOME = FETCHED / "chromium"
PROGRAM = HOME / "usr" / "lib" / "chromium" / "chromium-headless-shell"
WHY = FETCHED / "chromium.missing"
_PACKAGE = "chromium-headless-shell"
_TIMEOUT = 600


def main() -> None:
    """Fetch it with what it needs; never fail: who cannot get it runs the tests without it."""
    FETCHED.mkdir(exist_ok=True)
    try:
        if not PROGRAM.exists():
            _fetch()
        WHY.unlink(missing_ok=True)
        sys.stdout.write(f"chromium: {PROGRAM.parent}\n")
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(HOME, ignore_errors=True)
        WHY.write_text(" ".join(str(error).split())[-300:])
        sys.stdout.write(f"chromium: cannot be had here: {WHY.read_text()}\n")


def _fetch() -> None:
    """Fetch the package, and of its dependencies those that this machine lacks."""
    plan = _run("apt-get", "--simulate", "--no-install-recommends", "install", _PACKAGE)
    lacking = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
    with tempfile.TemporaryDirectory() as made:
        _run("apt-get", "download", *(lacking or [_PACKAGE]), cwd=made)
        for package in Path(made).glob("*.deb"):
            _run("dpkg-deb", "-x", package, HOME)


def _run(*command: str | Path, cwd: str | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=_TIMEOUT, check=False
    )
    if done.returncode:
        raise OSError(f"{command[0]} {command[1]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def libraries() -> str:
    """Return the folders of the libraries that were fetched along, as the linker wants them."""
    folders = {one.parent for one in (HOME / "usr" / "lib").rglob("*.so*")}
    return ":".join(str(folder) for folder in sorted(folders) if folder != PROGRAM.parent)


class Watched:
    """A tab, and everything that it complained of or asked elsewhere.

    Attributes:
        page: playwright's page.
        address: of the memorybus page, ``http://127.0.0.1:…``.
        complaints: errors of its console and its scripts.
        strangers: addresses it asked for that are not the page's.
    """

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._asked)

    def open(self, path: str) -> None:
        """Open a path, and wait until its scripts have run."""
        self.page.goto(f"{self.address}{path}", wait_until="load")

    def sign_in(self, name: str, token: str) -> None:
        """Sign in with the form, as people do."""
        self.open("/signin")
        self.page.fill("[name=name]", name)
        self.page.fill("[name=token]", token)
        self.page.click("main button")
        self.page.wait_for_url(f"{self.address}/")

    def violations(self) -> list[tuple[str, str]]:
        """Return what axe finds against WCAG 2.1 A and AA: the rule and the element."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
        rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
        found = axe.run(self.page, options=rules).response["violations"]
        return [(each["id"], each["nodes"][0]["html"]) for each in found]

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((f"{self.address}/", "data:")):
            self.strangers.append(request.url)


class Browser:
    """A Chromium that runs."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    @contextmanager
    def tab(
        self,
        address: str,
        scheme: str = "light",
        width: int = 1280,
        height: int = 800,
        zone: str = "UTC",
    ) -> Iterator[Watched]:
        """Open a tab without cookies.

        Args:
            address: of the page, ``HOST:PORT``.
            scheme: "light" or "dark".
            width, height: pixels.
            zone: the reader's time zone.
        """
        context = self._browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": height},
            locale="en-GB",
            timezone_id=zone,
        )
        try:
            yield Watched(context.new_page(), f"http://{address}")
        finally:
            context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a Chromium; skip the test if it, or playwright, is not here."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not PROGRAM.exists():
        said = f" (last time: {WHY.read_text()})" if WHY.exists() else ""
        pytest.skip(f"chromium is not here; get it: make servers{said}")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=str(PROGRAM),
            args=["--no-sandbox"],  # it opens our own page alone, and tests may run as root
            env={"LD_LIBRARY_PATH": libraries(), "HOME": str(HOME), "LANG": "C.UTF-8"},
        )
        try:
            yield Browser(browser)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
