"""Notifies people of a verdict, through any of the services that Apprise reaches."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from memorybus.config.settings import Settings, read_variable
from memorybus.errors import ConfigError, install_command
from memorybus.health.finding import Finding
from memorybus.health.verdict import State, Verdict
from memorybus.text.display import visible
from memorybus.text.redact import one_line

_MAX_FINDINGS: Final = 20  # how many findings a message names; it counts the others

_NO_MARKUP: Final = str.maketrans({"<": "‹", ">": "›", "@": "＠"})
"""A finding may quote hostile text, in which ``<!channel>`` or ``@everyone`` would ring phones."""

_TYPES: Final[Mapping[State, str]] = {
    "OK": "success",
    "WARNING": "warning",
    "CRITICAL": "failure",
    "UNKNOWN": "failure",
}
"""How Apprise names the states."""


class Notifier:
    """Sends messages about one bus to the addresses of people.

    Args:
        targets: Apprise URLs, or names of environment variables that hold one or more of them.

    Raises:
        ConfigError: Apprise is not installed, a variable is not set, or it knows no such address.
    """

    def __init__(self, settings: Settings, targets: Sequence[str]) -> None:
        try:
            from apprise import Apprise
        except ImportError as error:
            raise ConfigError(
                f"check --notify needs Apprise; run: {install_command('notify')}"
            ) from error
        urls = list(map(_read_target, targets))
        self._namespace = settings.namespace
        self._secrets = settings.secrets | set(urls)
        self._services = Apprise()
        if not all(map(self._services.add, urls)):
            raise ConfigError(
                "check --notify: Apprise cannot read an address; see "
                "https://github.com/caronc/apprise/wiki for those that it knows"
            )

    def send(self, verdict: Verdict) -> bool:
        """Send a verdict to all addresses; return False if one of them did not take it."""
        from apprise import NotifyType

        title = f"memorybus {self._namespace}: {verdict.state}"
        body = describe_verdict(verdict, self._secrets)
        return bool(self._services.notify(body, title, NotifyType(_TYPES[verdict.state])))


class VerdictChange:
    """Decides when a verdict is news: its findings differ, and were seen twice in a row."""

    def __init__(self) -> None:
        self._told: Collection[tuple[str, ...]] = frozenset()
        self._last: Collection[tuple[str, ...]] = frozenset()

    def is_news(self, verdict: Verdict) -> bool:
        """Take the verdict of a look; return whether people should be notified of it."""
        kinds = _kinds(verdict)
        lasts, self._last = kinds == self._last, kinds
        return lasts and kinds != self._told

    def note_sent(self, verdict: Verdict) -> None:
        self._told = _kinds(verdict)


def describe_verdict(verdict: Verdict, secrets: Collection[str] = ()) -> str:
    """Return a verdict as plain text for people: a line for each finding, with its remedy."""
    lines = [_describe_finding(finding, secrets) for finding in verdict.findings[:_MAX_FINDINGS]]
    more = len(verdict.findings) - len(lines)
    if more:
        lines.append(f"and {more} more; run: memorybus check --json")
    return "\n".join(lines) or visible(one_line(verdict.line, secrets)).translate(_NO_MARKUP)


def _describe_finding(finding: Finding, secrets: Collection[str]) -> str:
    line = f"{finding.severity.upper()} {finding.text}; {finding.remedy}"
    return visible(one_line(line, secrets)).translate(_NO_MARKUP)


def _kinds(verdict: Verdict) -> Collection[tuple[str, ...]]:
    """Return what a verdict consists of, without figures that change at every look."""
    kinds: set[tuple[str, ...]] = {
        (finding.code, finding.severity, finding.subject) for finding in verdict.findings
    }
    if not kinds and verdict.state != "OK":
        kinds.add((verdict.state,))
    return frozenset(kinds)


def _read_target(target: str) -> str:
    if "://" in target:
        return target
    url = read_variable(target).strip()
    if not url:
        raise ConfigError(
            f"check --notify: {target[:100]!r} is neither a URL nor an environment variable that "
            f"holds one; set the variable here, or in the secrets file"
        )
    return url
