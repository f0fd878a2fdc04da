"""Errors of backends as they may be kept and shown: one bounded line, without credentials."""

import re

from memorybus.dead_letters import one_line

_SHOWN = "***"
_URL = re.compile(r"(?<=://)[^/\s@]+@")
_NAMED = re.compile(
    r"(?i)\b((?:api[-_ ]?key|token|secret|password|passwd|authorization)['\"]?\s*[:=]\s*['\"]?"
    r"(?:bearer\s+|basic\s+)?|bearer\s+)[^\s'\",;&)}]+"
)
_KEY = re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|m0|hsk)[-_][\w-]{8,}")


def described(error: BaseException) -> str:
    """Return an error's type and text in one line of bounded length, credentials masked.

    What an error quotes is the backend's or a user's text: show it through `plain.visible`.
    """
    return masked(one_line(f"{type(error).__name__}: {error}"))


def masked(text: str) -> str:
    """Return a text without what looks like a credential: in URLs, after its name, by its form."""
    text = _URL.sub(f"{_SHOWN}@", text)
    return _KEY.sub(_SHOWN, _NAMED.sub(rf"\1{_SHOWN}", text))
