"""Compression summaries in a stored transcript: what Hermes wrote there that nobody said.

The markers are those of Hermes 0.19.0 and before (``agent/context_compressor.py``,
``agent/conversation_compression.py``, ``hermes_state.py``).
"""

_SUMMARIES = ("[CONTEXT COMPACTION — REFERENCE ONLY]", "[CONTEXT SUMMARY]:")
_PRIOR = "[PRIOR CONTEXT — for reference only; not a new message]"
_BELOW = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
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
    """Say whether a message is, or holds, the summary of what a compression took out."""
    return _BELOW in text or text.lstrip().startswith(_SUMMARIES)


def without_summary(text: str) -> str:
    """Return what was said in a message that a summary was merged into; "" if it is one alone."""
    before, below, _ = text.partition(_BELOW)
    return before.strip().removeprefix(_PRIOR).strip() if below else ""


def is_synthetic(text: str) -> bool:
    """Say whether a user's message is a note of Hermes to the model, within a turn."""
    return text.lstrip().startswith(_SYNTHETIC)


def is_review(text: str) -> bool:
    """Say whether a user's message begins a background review, which older Hermes stored."""
    return text.lstrip().startswith(_REVIEWS)
