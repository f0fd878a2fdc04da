"""Reads a file as a `Transcript`: decodes it, recognizes its format and parses it."""

import io
from collections.abc import Iterator
from pathlib import Path

from memorybus.operations.ingest.refused import RefusedInput
from memorybus.operations.ingest.shapes.decoding import decoded_lines
from memorybus.operations.ingest.shapes.json_lines import JsonFile, JsonLine, parse_file
from memorybus.operations.ingest.shapes.left_out import LeftOut
from memorybus.operations.ingest.transcripts import locomo
from memorybus.operations.ingest.transcripts.messages import parse_messages
from memorybus.operations.ingest.transcripts.model import (
    ReadingOptions,
    Transcript,
    TranscriptError,
)

_DEFAULT_OPTIONS = ReadingOptions()


def read_transcript(path: Path, options: ReadingOptions = _DEFAULT_OPTIONS) -> Transcript:
    """Read and parse one file.

    Raises:
        TranscriptError: the file cannot be read, or nothing in it is a conversation.
    """
    try:
        with path.open("rb") as file:
            return _parse(file, str(path), path.stem, options)
    except OSError as error:
        raise TranscriptError(error.strerror or str(error), str(path)) from error


def parse_transcript(
    data: bytes, name: str, stem: str, options: ReadingOptions = _DEFAULT_OPTIONS
) -> Transcript:
    """Parse a file's bytes: LoCoMo, a JSON document of messages, or one JSON value a line.

    What cannot be read in it is left out, and noted in `Transcript.left_out` with its place.

    Args:
        data: the bytes; see `decoded_lines`.
        name: the file's name as errors show it.
        stem: used to name the sessions that the file does not name.
        options: how times are read, and how large a turn may be.

    Raises:
        TranscriptError: nothing in it can be read; the message has the first place and the reason.
    """
    return _parse(io.BufferedReader(io.BytesIO(data)), name, stem, options)


def _parse(file: io.BufferedReader, name: str, stem: str, options: ReadingOptions) -> Transcript:
    left_out = LeftOut()
    parsed = parse_file(decoded_lines(file, name), name, left_out)
    is_locomo = any(locomo.is_sample(line.value) for line in parsed.lines)
    transcript = (
        _parse_samples(parsed, name, stem, options, left_out)
        if is_locomo
        else parse_messages(parsed, name, stem, options, left_out)
    )
    if transcript.conversations:
        return transcript
    nothing = "no session with an utterance in it" if is_locomo else "no message with content in it"
    for refusal in left_out.named:
        raise TranscriptError(refusal.why.removeprefix(f"{refusal.place}: "), refusal.place)
    raise TranscriptError(nothing, name)


def _parse_samples(
    file: JsonFile, name: str, stem: str, options: ReadingOptions, left_out: LeftOut
) -> Transcript:
    parsed = [
        locomo.parse_sample(line, name, stem, options, left_out)
        for line, stem in _samples(file, name, stem, left_out)
    ]
    return Transcript(
        conversations=tuple(one for sample in parsed for one in sample.conversations),
        skipped=sum(sample.skipped for sample in parsed),
        left_out=left_out,
    )


def _samples(
    file: JsonFile, name: str, stem: str, left_out: LeftOut
) -> Iterator[tuple[JsonLine, str]]:
    """Yield the samples, each with the beginning of its sessions' ids."""
    for line in file.lines:
        if not locomo.is_sample(line.value):
            why = f"{line.where}: not a LoCoMo sample like the others"
            left_out.refuse(RefusedInput(name, why, line.where))
        elif len(file.lines) == 1:
            yield line._replace(where=name), stem
        else:
            yield line, f"{stem}-{line.number}"
