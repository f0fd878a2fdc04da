"""A finding is one thing that is wrong; a check is the result for one topic."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from memorybus.text.redact import masked

Code = Literal[
    "data_loss",
    "foreign_entries",
    "eviction_policy",
    "persistence",
    "read_only",
    "no_append_only_file",
    "memory",
    "disk",
    "archive",
    "archive_ahead",
    "lane_halted",
    "no_worker",
    "worker_gone",
    "unserved",
    "failing",
    "paused",
    "dead_letters",
    "recalls",
    "behind",
    "hot_lane",
    "spool",
    "versions",
    "model",
    "redis_away",
]
Severity = Literal["critical", "warning"]
_QUOTING: frozenset[Code] = frozenset(
    ("archive", "failing", "lane_halted", "model", "paused", "recalls")
)
"""The kinds of findings whose texts quote a backend or an operator."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    code: Code  # the kind of finding
    # "critical": events are lost, or will be, or something does not work; "warning": everything
    # works, but somebody has to act before long
    severity: Severity
    subject: str  # what it is about; code and subject together identify a finding
    text: str  # what was seen. It may quote hostile text
    remedy: str  # what to do
    since: str | None = None  # since when it is wrong (ISO 8601, UTC); None if nobody knows

    def without_quotation(self) -> "Finding":
        if self.code not in _QUOTING:
            return self
        text = f"{self.subject}: {self.code.replace('_', ' ')}; sign in to read why"
        return msgspec.structs.replace(self, text=text)


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking one topic; a line of `memorybus doctor`."""

    name: str  # the topic
    ok: bool  # whether it is as it should be
    found: str  # what was seen
    fix: str = ""  # what to do; together with `ok` it is a warning: what to do before long

    def __post_init__(self) -> None:
        """Mask credentials, because `found` may quote an error of any backend."""
        msgspec.structs.force_setattr(self, "found", masked(self.found))

    @classmethod
    def from_findings(cls, name: str, findings: Iterable[Finding], well: str) -> "Check":
        """Return the check of a topic: it fails if a finding is critical."""
        wrong = list(findings)
        return cls(
            name=name,
            ok=all(finding.severity != "critical" for finding in wrong),
            found="; ".join(finding.text for finding in wrong) or well,
            fix="; ".join(dict.fromkeys(finding.remedy for finding in wrong)),
        )
