"""LoCoMo JSON: long conversations of two people over many sessions.

``speaker_a`` counts as the user and ``speaker_b`` as the assistant. ``session_N`` becomes the
session ``<sample>:session_N`` at the time of ``session_N_date_time``, and continues the session
before it. Source of the format: https://github.com/snap-research/locomo
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memorybus.text.times import parse_timestamp

from memorybus_console.operations.ingest.reading.json_files import JsonLine
from memorybus_console.operations.ingest.reading.model import (
    ReadingOptions,
    RecordedSession,
    RecordedTurn,
    Transcript,
    with_unique_ids,
)
from memorybus_console.operations.ingest.reading.names import id_text, role_of
from memorybus_console.operations.ingest.report import LeftOut, RefusedInput

_SESSION = re.compile(r"session_(\d{1,6})")


class _Speakers(NamedTuple):
    user: str
    assistant: str


class _Utterance(NamedTuple):
    by_user: bool
    text: str
    raw: Mapping[str, Any]


class _Pair(NamedTuple):
    user: _Utterance | None
    assistant: _Utterance | None


def is_sample(value: Any) -> bool:
    """Return whether a JSON value is one LoCoMo sample, bare or under ``conversation``."""
    return isinstance(value, dict) and "speaker_a" in _body_of(value) and role_of(value) is None


def parse_sample(
    line: JsonLine, name: str, stem: str, options: ReadingOptions, left_out: LeftOut
) -> Transcript:
    """Parse one sample.

    Args:
        stem: names the sessions if the sample has no ``sample_id``.
        options: how times are read, and how large a turn may be.
        left_out: gets the sessions and utterances that cannot be read.
    """
    reader = _SampleReader(name, line.where, options, left_out)
    sessions = tuple(reader.sessions(line.value, stem))
    return Transcript(conversations=sessions, skipped=reader.skipped, left_out=left_out)


@dataclass
class _SampleReader:
    name: str
    where: str
    options: ReadingOptions
    left_out: LeftOut
    skipped: int = 0

    def sessions(self, sample: Mapping[str, Any], stem: str) -> Iterator[RecordedSession]:
        """Yield the sessions in which something is spoken; each continues the one before."""
        body, sample_id = _body_of(sample), id_text(sample.get("sample_id"))
        speakers = _speakers_of(body)
        if speakers is None:
            self._refuse("'speaker_a' and 'speaker_b' must be two different names")
            return
        after = ""
        for key in _session_keys(body):
            at = self._time(body.get(f"{key}_date_time"))
            utterances = self._utterances(body[key], speakers, key)
            turns = [self._turn(pair, speakers, at) for pair in _pair_utterances(utterances)]
            session = RecordedSession(
                session=f"{sample_id or stem}:{key}",
                named=bool(sample_id),
                turns=with_unique_ids(turns),
                after=after,
                user=speakers.user,
                at=at,
                title=f"{speakers.user} and {speakers.assistant}",
            )
            if turns:
                after = session.session
                yield session

    def _turn(self, pair: _Pair, speakers: _Speakers, at: int | None) -> RecordedTurn:
        user, assistant = (side.text if side else "" for side in pair)
        utterances = [side for side in pair if side]
        messages = [_build_message(side) for side in utterances]
        return RecordedTurn(
            user=user,
            assistant=assistant,
            messages=self.options.fitting(messages, user + assistant, self.left_out),
            user_name=speakers.user,
            assistant_name=speakers.assistant,
            at=at,
            source_id=id_text(utterances[0].raw.get("dia_id")),
        )

    def _refuse(self, why: str, place: str = "") -> None:
        where = f"{self.where}: {place}" if place else self.where
        self.left_out.refuse(RefusedInput(self.name, f"{where}: {why}", where))

    def _time(self, given: object) -> int | None:
        if given is None:
            return None
        try:
            return parse_timestamp(given, self.options.zone)
        except ValueError:
            self.left_out.drop("unreadable times")
            return None

    def _utterances(self, session: Any, speakers: _Speakers, key: str) -> list[_Utterance]:
        if not isinstance(session, list):
            self._refuse("expected a list of utterances", key)
            return []
        every = [self._utterance(raw, speakers, f"{key}[{i}]") for i, raw in enumerate(session)]
        readable = [utterance for utterance in every if utterance]
        spoken = [utterance for utterance in readable if utterance.text]
        self.skipped += len(readable) - len(spoken)
        return spoken

    def _utterance(self, raw: Any, speakers: _Speakers, place: str) -> _Utterance | None:
        if not isinstance(raw, dict):
            self._refuse("expected an object with 'speaker' and 'text'", place)
        elif raw.get("speaker") not in speakers:
            given = str(raw.get("speaker"))[:40]
            self._refuse(
                f"speaker {given!r} is neither {speakers.user!r} nor {speakers.assistant!r}", place
            )
        else:
            return _Utterance(raw["speaker"] == speakers.user, _text_with_photo(raw), raw)
        return None


def _body_of(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = sample.get("conversation")
    return inner if isinstance(inner, dict) else sample


def _speakers_of(body: Mapping[str, Any]) -> _Speakers | None:
    user, assistant = body.get("speaker_a"), body.get("speaker_b")
    if not isinstance(user, str) or not isinstance(assistant, str):
        return None
    return _Speakers(user, assistant) if user and assistant and user != assistant else None


def _session_keys(body: Mapping[str, Any]) -> list[str]:
    matches = (_SESSION.fullmatch(key) for key in body)
    numbered = sorted((int(match[1]), match[0]) for match in matches if match)
    return [key for _, key in numbered]


def _text_with_photo(raw: Mapping[str, Any]) -> str:
    text, caption = id_text(raw.get("text")), raw.get("blip_caption")
    return f"{text} [photo: {caption}]" if isinstance(caption, str) and caption else text


def _pair_utterances(utterances: Sequence[_Utterance]) -> Iterator[_Pair]:
    """Pair each utterance of the user with the answer right after it; others stay single.

    So each side of a turn is at most one utterance, even if somebody speaks twice in a row.
    """
    asked: _Utterance | None = None
    for utterance in utterances:
        if not utterance.by_user:
            yield _Pair(asked, utterance)
            asked = None
            continue
        if asked is not None:
            yield _Pair(asked, None)
        asked = utterance
    if asked is not None:
        yield _Pair(asked, None)


def _build_message(utterance: _Utterance) -> dict[str, Any]:
    rest = {key: value for key, value in utterance.raw.items() if key not in ("speaker", "text")}
    role = "user" if utterance.by_user else "assistant"
    return rest | {"role": role, "name": utterance.raw["speaker"], "content": utterance.text}
