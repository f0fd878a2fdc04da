"""Masks secrets as Hermes does, and recognises masked copies.

A host may mask what it hands to the bus and keep the raw text in its own files. Masks differ in
what they find and what they write. So a copy is recognised by what no mask has touched.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from memorybus.text.redact import masked

_T = TypeVar("_T")

_TOKEN = re.compile(r"[A-Za-z0-9_\-./+]{16,}")
_REDACTED = "[redacted]"
_MARK = re.compile(
    r"""(?xi)
      \[ redacted [^\]\n]{0,40} \] | « redacted [^»\n]{0,40} » | \*{3,}
    | (?<=\S{6}) \.{3} (?=\S{4})                                  # the ends of a long secret remain
    """
)
"""What masks write: ours, and those of Hermes."""


def mask_as_host(value: _T) -> _T:
    """Return a raw value from Hermes's files with secrets masked, as a hook would have passed it.

    Do not mask twice: what a mask leaves of a secret may look like another secret.
    """
    return mask_texts(value, _host_mask() or masked)


def mask_hand_off(value: _T) -> _T:
    """Return what an agent hands to its memory manager, masked as Hermes's own manager masks it."""
    mask = _host_mask()
    return mask_texts(value, mask) if mask else value


def _host_mask() -> Callable[[str], str] | None:
    try:
        module = importlib.import_module("agent.redact")
    except ImportError:  # before 0.21.6, or outside of Hermes's environment
        return None
    redact = getattr(module, "redact_for_egress", None)
    return cast("Callable[[str], str]", redact) if callable(redact) else None


def mask_texts(value: _T, mask: Callable[[str], str] = masked) -> _T:
    """Return a value with the secrets masked in every text of it.

    A token that is masked in one text is masked in all: a key found in a tool's result is often
    repeated in prose.

    Args:
        value: a text, or mappings, lists and tuples with texts in them.
    """
    secrets: set[str] = set()

    def mask_one(text: str) -> str:
        shown = mask(text)
        if shown != text:
            secrets.update(set(_TOKEN.findall(text)) - set(_TOKEN.findall(shown)))
        return shown

    def mask_again(text: str) -> str:
        return _TOKEN.sub(lambda m: _REDACTED if m[0] in secrets else m[0], text)

    shown = _each_text(value, mask_one)
    return cast("_T", _each_text(shown, mask_again) if secrets else shown)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return value if value.startswith("data:") else change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_each_text(inner, change) for inner in value)
    return value


def is_masked(text: str) -> bool:
    """Return whether a text contains what a mask writes."""
    return _MARK.search(text) is not None


def is_masked_copy(text: str, raw: str) -> bool:
    """Whether a text is another one with parts of it masked, without regard to white space."""
    first, *middle = _MARK.split(" ".join(text.split()))
    raw = " ".join(raw.split())
    if not middle:
        return False
    last = middle.pop()
    if " " in raw and not "".join((first, *middle, last)).strip():
        return False  # nothing is left by which it could be told from other texts
    at, end = len(first), len(raw) - len(last)
    if not (raw.startswith(first) and raw.endswith(last)):
        return False
    for piece in middle:
        place = raw.find(piece, at + 1, end)  # a mark stands for a character at least
        if place < 0:
            return False
        at = place + len(piece)
    return at < end
