"""What every command prints: within 80 columns with whole ids, and whole and unpadded in a pipe."""

import re

import pytest
from helpers.stories.everything import COPY, LONG_NAME, everything
from memorybus_console.views.output import Output
from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f-]{27}|session:[0-9a-f]{16}:[\w-]+")
"""Ids of events, and order keys."""


@pytest.fixture(name="too_wide")
def _too_wide(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of tables that were wider than the stream; running text may be longer."""
    found: list[str] = []
    show = Output.show

    def watched(self: Output, renderable: RenderableType) -> None:
        show(self, renderable)
        if not isinstance(renderable, str | Text):
            for line in self.out.render_lines(renderable, pad=False):
                text = "".join(segment.text for segment in line)
                if cell_len(text) > self.out.width:
                    found.append(text)

    monkeypatch.setattr(Output, "show", watched)
    return found


def ids(text: str) -> set[str]:
    """Return the ids that stand in a text, whole."""
    return set(_ID.findall(text)) | {name for name in (COPY, LONG_NAME) if name in text}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_tables_fit_a_terminal_and_are_whole_in_a_pipe(
    redis_client, make_settings, tmp_path, spawn, too_wide
):
    """At 80 columns no table is wider and no id is folded; piped, no line is folded or padded.

    COLUMNS says how wide a pipe is, if it is set.
    """
    wrong: list[str] = []
    with everything(redis_client, make_settings, tmp_path, spawn) as bus:
        for words in bus.commands():
            piped = bus.run(*words)
            seen = bus.run(*words, columns="80", terminal=True)
            narrow = bus.run(*words, columns="60")
            name = " ".join(words)
            if not (piped.code == seen.code == narrow.code) or piped.code not in (0, 1, 2):
                wrong.append(f"{name}: {piped.code} {seen.code} {narrow.code}: {piped.err}")
            if lost := ids(piped.out) - ids(seen.out):
                wrong.append(f"{name}: these are not whole: {lost}")
            if padded := [line for line in piped.out.splitlines() if line != line.rstrip()]:
                wrong.append(f"{name}: padded in a pipe: {padded[:2]}")
            wrong += [f"{name}: too wide: {line}" for line in too_wide]
            too_wide.clear()
    assert not wrong, "\n".join(wrong)
