"""Keeps the plugin's output in a file of bounded size, with credentials masked."""

import contextlib
import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path

MAX_FILE_BYTES = 256 << 10
"""If the file has more bytes, it is renamed and a new one is begun; two files are kept (G10)."""

_MAX_LINE_CHARS = 4_096
_MIN_SECRET_CHARS = 6
_ENTRY = re.compile(r"^\s*(?:export\s+)?[A-Za-z_]\w*\s*=\s*['\"]?([^'\"\n]+)['\"]?\s*$")


class Mask:
    """Replaces credentials by ``***``.

    Args:
        secrets: values that must never be shown. Those of less than six characters are not masked,
            since they may be part of ordinary words.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted(
            {secret for secret in secrets if len(secret) >= _MIN_SECRET_CHARS}, key=len
        )[::-1]

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def kept_secrets(path: Path) -> list[str]:
    """Return the values of a ``.env`` file; none if it cannot be read."""
    with contextlib.suppress(OSError):
        lines = path.read_text(errors="replace").splitlines()
        return [found[1].strip() for line in lines if (found := _ENTRY.match(line))]
    return []


def capture(path: Path, mask: Mask) -> None:
    """Write all output of this process to a file, through a thread that bounds and masks it."""
    reader, writer = os.pipe()
    for standard in (1, 2):
        os.dup2(writer, standard)
    os.close(writer)
    threading.Thread(target=_copy, args=(reader, path, mask), daemon=True, name="output").start()


def _copy(reader: int, path: Path, mask: Mask) -> None:
    with os.fdopen(reader, "rb") as lines:
        while line := lines.readline(_MAX_LINE_CHARS):
            with contextlib.suppress(OSError):  # a full disk must not stop the printing process
                _append(path, mask(line.decode(errors="replace")))


def _append(path: Path, text: str) -> None:
    if path.exists() and path.stat().st_size > MAX_FILE_BYTES:
        path.replace(path.with_suffix(".old.log"))
    with path.open("a") as file:
        file.write(text)
