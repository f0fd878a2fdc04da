"""Makes errors fit for people and for stores: bounded, and without credentials."""

import logging
import re
from collections.abc import Collection

REASON_CHARS = 500
TRACE_CHARS = 4096
_MAX_EXAMINED_CHARS = 65_536
"""Characters of a text that are examined before it is cut to what is kept."""

_MASK = "***"
_MIN_MASKED_CHARS = 8
"""Characters of a value that is masked wherever it stands; shorter ones occur in words."""

_HARMLESS_VALUES = frozenset(("none", "null", "true", "false", "undefined", _MASK))
"""Values that are not secrets; they show that a key is missing, which is worth knowing."""

_WORD = re.compile(r"[^\s\"'<>`\\]+")
_AUTHORITY = re.compile(r"[^/?#]*")
_STORES = ("redis", "rediss", "sentinel", "cluster", "postgres", "postgresql", "mysql", "mongodb")
"""Schemes (or their ends) whose paths never contain an ``@``: one there is in the password."""

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
"""A table that leaves every other letter where it is, which `str.lower` does not."""

# Alternatives begin with a letter, so that `re` passes over other letters fast; hence lower case.
_NAME = re.compile(
    r"""(?x)
    (?: (?: api | access | private | secret | account | auth | encryption | signing)
        [-_\ ]? key (?: [-_\ ]? id)?
      | token | secret | password | passwd | passphrase | pwd | credentials? | signature
      | authorization | bearer
    )
    (?: \\{0,8}["'] \s{0,8} , \s{0,8} [bru]? (?= \\{0,8}["'])          # ('token', 'value')
      | (?: \\{0,8}["'] )? \s{0,8} [:=]>? \s{0,8} (?: [bru] (?= \\{0,8}["']) )?
      | (?P<bearer> (?<=bearer) \s{1,8} )
    )
    """
)
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest|negotiate|apikey)\s{1,8}")
_OPENING = re.compile(r"\\{0,8}[\"']")
_BARE = re.compile(r"(?:[^\s\"'&,;:.)}\]>\\]|[,;:.)}\]>](?=[^\s\"'&,;:.)}\]>\\]))+")
"""Not possessive (`++`): before Python 3.11.5, a possessive group matches too much (gh-106052)."""
_BEARER_LIKE = re.compile(r"\S{16}|\S{0,64}?[\d._~+/=-][^\s.,;:]")

_FORM = re.compile(
    r"""(?x)
      sk (?<! \wsk) [-_] [\w-]{8,}+                                     # OpenAI, Anthropic, Stripe
    | pk (?<! \wpk) [-_] (?:live|test) [-_] [\w-]{8,}+
    | rk (?<! \wrk) [-_] (?:live|test) [-_] [\w-]{8,}+
    | gh[pousr]_ \w{8,}+ | github_pat_ \w{8,}+ | glpat- [\w-]{8,}+
    | xox[a-z]- (?<! \w.....) [\w-]{8,}+
    | hsk[-_] [\w-]{8,}+ | hch- [\w-]{8,}+ | m0- (?= \w{0,64}? \d) [\w-]{8,}+
    | npm_ \w{16,}+ | hf_ (?<! \w...) \w{16,}+ | AIza [\w-]{30,}+
    | AKIA [A-Z0-9]{12,}+ | ASIA [A-Z0-9]{12,}+
    | eyJ (?<! [\w.-]eyJ) [\w-]{6,}+ \. [\w.-]++                                             # JWT
    | -----BEGIN [A-Z ]{0,32} PRIVATE\ KEY----- (?s:.*?) (?: -----END[A-Z ]{0,40}----- | \Z )
    """
)


def describe_error(error: BaseException, secrets: Collection[str] = ()) -> str:
    """Return an error's type and text as one line of bounded length, with credentials masked."""
    return one_line(f"{type(error).__name__}: {error}", secrets)


def one_line(text: str, secrets: Collection[str] = ()) -> str:
    """Return a reason for a record: one masked line of at most `REASON_CHARS` characters."""
    line = " ".join(text[:_MAX_EXAMINED_CHARS].split())
    return masked(_unicode(line), secrets)[:REASON_CHARS]


def mask_trace_tail(trace: str, secrets: Collection[str] = ()) -> str:
    """Return the masked end of a traceback, at most `TRACE_CHARS` characters."""
    return masked(_unicode(trace[-_MAX_EXAMINED_CHARS:]), secrets)[-TRACE_CHARS:]


def masked(text: str, secrets: Collection[str] = ()) -> str:
    """Return a text without credentials: in URLs, after a name like ``token``, or by their form."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_MASKED_CHARS:
            text = text.replace(secret, _MASK)
    if "://" in text:
        text = _WORD.sub(lambda word: _without_user(word[0]), text)
    return _FORM.sub(_MASK, _without_named(text))


def mask_record(record: logging.LogRecord) -> bool:
    """Mask a log line of ours: a filter for the logger ``memorybus`` in an agent's process."""
    text = record.getMessage()
    shown = masked(text)
    if shown != text:
        record.msg, record.args = shown, None
    if record.exc_info:
        record.exc_text = masked(logging.Formatter().formatException(record.exc_info))
    return True


def _without_user(word: str) -> str:
    """Mask what stands before a URL's host; an unencoded password may contain ``/`` and ``@``."""
    last = word.rfind("@")
    at = word.find("://")
    while -1 < at < last:
        begin = at + len("://")
        authority = _AUTHORITY.match(word, begin)
        if authority and _names_user(word[max(0, at - 32) : at], authority[0]):
            return f"{word[:begin]}{_MASK}{word[last:]}"
        at = word.find("://", begin)
    return word


def _names_user(scheme: str, authority: str) -> bool:
    """Return whether a URL with an ``@`` somewhere begins with a user or a password."""
    host, colon, port = authority.rpartition(":")
    if "@" in authority or (colon and not host) or (authority and scheme.endswith(_STORES)):
        return True
    return bool(colon) and not port.isdigit() and not authority.startswith("[")


def _without_named(text: str) -> str:
    parts: list[str] = []
    done, at = 0, 0
    lower = text.lower() if text.isascii() else text.translate(_LOWER)
    while (name := _NAME.search(lower, at)) is not None:
        begin, at = _value(text, name)
        if begin < at and lower[begin:at] not in _HARMLESS_VALUES:
            parts += (text[done:begin], _MASK)
            done = at
    return "".join((*parts, text[done:]))


def _value(text: str, name: re.Match[str]) -> tuple[int, int]:
    """Return where the value behind a name begins and ends; both the same if there is none."""
    begin = name.end()
    opening = _OPENING.match(text, begin)
    begin = opening.end() if opening else begin
    if scheme := _SCHEME.match(text, begin):
        begin = scheme.end()
    if opening:
        end = re.compile(rf"(?<!\\){re.escape(opening[0])}|\n").search(text, begin)
        return begin, end.start() if end else len(text)
    bare = _BARE.match(text, begin)
    if bare is None or (name["bearer"] and not _BEARER_LIKE.match(text, begin)):
        return begin, begin
    return begin, bare.end()


def _unicode(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
