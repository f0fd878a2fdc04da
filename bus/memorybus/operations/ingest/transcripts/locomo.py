"""LoCoMo JSON: long conversations of two people over many sessions.

``speaker_a`` counts as the user and ``speaker_b`` as the assistant. ``session_N`` becomes the
session ``<sample>:session_N`` at the time of ``session_N_date_time`` (UTC), and continues the
session before it. Source of the format: https://github.com/snap-research/locomo
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memorybus.operations.ingest.transcripts.model import (
    RecordedSession,
    RecordedTurn,
    Transcript,
    TranscriptError,
)
from memorybus.text.times import parse_spoken_time

_SESSION = re.compile(r"session_(\d{1,6})")


class _Speakers(NamedTuple):
    user: str
    assistant: str


class _Utterance(NamedTuple):
    by_user: bool
    text: str
    raw: Mapping[str, Any]


def is_sample(value: Any) -> bool:
    """Say whether a JSON value is one LoCoMo sample, bare or under ``conversation``."""
    return isinstance(value, dict) and "speaker_a" in _body_of(value)


def parse_sample(sample: Mapping[str, Any], where: str, stem: str) -> Transcript:
    """Parse one sample.

    Args:
        sample: the JSON object.
        where: the file, for errors.
        stem: names the sessions if the sample has no ``sample_id``.

    Raises:
        TranscriptError: a session cannot be read; the message names it.
    """
    body = _body_of(sample)
    speakers = _speakers_of(body, where)
    sample_id = sample.get("sample_id")
    name = str(sample_id or stem)
    conversations: list[RecordedSession] = []
    skipped = 0
    for key in _session_keys(body):
        place = f"{where}: {key}"
        said, silent = _parse_utterances(body[key], speakers, place)
        skipped += silent
        if said:
            after = conversations[-1].session if conversations else ""
            at = _time_of(body, key, place)
            turns = tuple(_build_turn(pair, speakers, at) for pair in _pair_utterances(said))
            conversations.append(
                RecordedSession(
                    session=f"{name}:{key}",
                    named=bool(sample_id),
                    turns=turns,
                    after=after,
                    user=speakers.user,
                    at=at,
                    title=f"{speakers.user} and {speakers.assistant}",
                )
            )
    return Transcript(conversations=tuple(conversations), skipped=skipped)


def _body_of(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = sample.get("conversation")
    return inner if isinstance(inner, dict) else sample


def _speakers_of(body: Mapping[str, Any], where: str) -> _Speakers:
    names = (body.get("speaker_a"), body.get("speaker_b"))
    if not all(isinstance(name, str) and name for name in names) or names[0] == names[1]:
        raise TranscriptError("'speaker_a' and 'speaker_b' must be two different names", where)
    return _Speakers(str(names[0]), str(names[1]))


def _session_keys(body: Mapping[str, Any]) -> list[str]:
    found = (_SESSION.fullmatch(key) for key in body)
    numbered = sorted((int(match[1]), match[0]) for match in found if match)
    return [key for _, key in numbered]


def _time_of(body: Mapping[str, Any], key: str, place: str) -> int | None:
    text = body.get(f"{key}_date_time")
    if text is None:
        return None
    try:
        return parse_spoken_time(str(text))
    except ValueError as error:
        raise TranscriptError(str(error), f"{place}_date_time") from error


def _parse_utterances(
    session: Any, speakers: _Speakers, place: str
) -> tuple[Sequence[_Utterance], int]:
    if not isinstance(session, list):
        raise TranscriptError("expected a list of utterances", place)
    every = [_parse_utterance(raw, speakers, f"{place}[{i}]") for i, raw in enumerate(session)]
    said = [one for one in every if one.text]
    return said, len(every) - len(said)


def _parse_utterance(raw: Any, speakers: _Speakers, place: str) -> _Utterance:
    if not isinstance(raw, dict) or not isinstance(raw.get("text", ""), str):
        raise TranscriptError("expected an object with 'speaker' and 'text'", place)
    if raw.get("speaker") not in speakers:
        raise TranscriptError(
            f"speaker {raw.get('speaker')!r} is neither {speakers.user!r} "
            f"nor {speakers.assistant!r}",
            place,
        )
    return _Utterance(raw["speaker"] == speakers.user, _text_with_photo(raw), raw)


def _text_with_photo(raw: Mapping[str, Any]) -> str:
    text, caption = raw.get("text", ""), raw.get("blip_caption")
    return f"{text} [photo: {caption}]" if isinstance(caption, str) and caption else str(text)


class _Pair(NamedTuple):
    user: _Utterance | None
    assistant: _Utterance | None


def _pair_utterances(said: Sequence[_Utterance]) -> Iterator[_Pair]:
    """Pair each utterance of the user with the answer right after it; others stay single.

    So each side of a turn is at most one utterance, even if somebody speaks twice in a row.
    """
    asked: _Utterance | None = None
    for one in said:
        if not one.by_user:
            yield _Pair(asked, one)
            asked = None
            continue
        if asked is not None:
            yield _Pair(asked, None)
        asked = one
    if asked is not None:
        yield _Pair(asked, None)


def _build_turn(pair: _Pair, speakers: _Speakers, at: int | None) -> RecordedTurn:
    return RecordedTurn(
        user=pair.user.text if pair.user else "",
        assistant=pair.assistant.text if pair.assistant else "",
        messages=tuple(_build_message(one) for one in pair if one),
        user_name=speakers.user,
        assistant_name=speakers.assistant,
        at=at,
    )


def _build_message(said: _Utterance) -> dict[str, Any]:
    rest = {key: value for key, value in said.raw.items() if key not in ("speaker", "text")}
    role = "user" if said.by_user else "assistant"
    return rest | {"role": role, "name": said.raw["speaker"], "content": said.text}
