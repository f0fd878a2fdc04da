"""Recognises the parts of a user's message that the person did not write: pure functions.

Hermes expands ``/skill`` into a message that contains the whole skill. It also writes messages of
its own under the role ``user``: notes to the model, and summaries of what a compression removed.
The marks are those of Hermes Agent 0.19 and before (``agent/skill_commands.py``,
``agent/conversation_compression.py``, ``agent/context_compressor.py``, ``hermes_state.py``,
``tools/process_registry.py``).
"""

from collections.abc import Mapping
from typing import Any

_INVOKED = "[IMPORTANT: The user has invoked the "
_SKILL = "The full skill content is loaded below.]"
_SKILL_INSTRUCTION = (
    "The user has provided the following instruction alongside the skill invocation: "
)
_SKILL_END = "\n\n[Runtime note:"
_BUNDLE = " skill bundle,"
_BUNDLE_INSTRUCTION = "\nUser instruction: "
_BUNDLE_END = "\n\n[Loaded as part of the "

_BY_HOST = (
    "[ASYNC DELEGATION COMPLETE",
    "[ASYNC DELEGATION BATCH COMPLETE",
    "[IMPORTANT: Background process ",
)
"""How messages begin that open a turn although Hermes wrote them: a background task has ended."""

_FLAGS = (
    "_todo_snapshot_synthetic",
    "_empty_recovery_synthetic",
    "_verification_stop_synthetic",
    "_pre_verify_synthetic",
    "_compressed_summary",
)


def user_text(text: str) -> str:
    """Return what the person said in a message, or "" if it only carries scaffolding."""
    if not text.startswith(_INVOKED):
        return text
    if _BUNDLE in text:  # the instruction stands before the skills
        return _between(text, text.find(_BUNDLE_INSTRUCTION), _BUNDLE_INSTRUCTION, _BUNDLE_END)
    if _SKILL in text:  # after the skill, which may quote these very words
        return _between(text, text.rfind(_SKILL_INSTRUCTION), _SKILL_INSTRUCTION, _SKILL_END)
    return ""


def _between(text: str, at: int, begin: str, end: str) -> str:
    return text[at + len(begin) :].split(end, 1)[0].strip() if at >= 0 else ""


def is_by_host(text: str) -> bool:
    """Return whether Hermes wrote this user message, which opens a turn, by itself."""
    return text.startswith(_BY_HOST)


def opens_turn(message: Mapping[str, Any]) -> bool:
    """Return whether a message begins a turn of the person, or one that Hermes begins by itself."""
    if message.get("role") != "user" or any(message.get(flag) for flag in _FLAGS):
        return False
    text = text_of(message.get("content")).lstrip()
    return bool(text) and not is_synthetic(text) and not is_summary(text)


def text_of(content: object) -> str:
    """Return the text of a message's content; the texts of several parts are separate lines."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(text for part in content if (text := _part_text(part)))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    text = part.get("text")
    if isinstance(text, str):
        return text
    return "[image]" if "image" in str(part.get("type")) else ""


# -- text that compressions wrote ------------------------------------------------------------------

_SUMMARIES = ("[CONTEXT COMPACTION — REFERENCE ONLY]", "[CONTEXT SUMMARY]:")
_PRIOR = "[PRIOR CONTEXT — for reference only; not a new message]"
_BELOW = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
_SUMMARY_END = "--- END OF CONTEXT SUMMARY"
_SYNTHETIC = (
    "[System: Your previous response was truncated",
    "[System: The previous response was cut off",
    "[System: Your previous tool call",
    "[Your active task list was preserved across context compression]",
)
_REVIEWS = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)


def is_summary(text: str) -> bool:
    """Return whether a message is, or contains, the summary of what a compression removed."""
    return _BELOW in text or text.lstrip().startswith(_SUMMARIES)


def without_summary(text: str) -> str:
    """Return what the person said in a message that contains a summary; "" if that was nothing."""
    before, below, _ = text.partition(_BELOW)
    if below:
        return before.strip().removeprefix(_PRIOR).strip()
    _, _, after = text.partition(_SUMMARY_END)
    return after.partition("---")[2].strip()


def spoken_text(text: str) -> str:
    """Return what the person said in a stored message; "" if it is a summary or scaffolding."""
    return without_summary(text) if is_summary(text) else user_text(text)


def is_synthetic(text: str) -> bool:
    """Return whether a user's message is a note that Hermes wrote to the model within a turn."""
    return text.lstrip().startswith(_SYNTHETIC)


def is_review(text: str) -> bool:
    """Return whether a user's message begins a background review; older releases stored these."""
    return text.lstrip().startswith(_REVIEWS)
