"""What a scripted model derives of the questions of `ModelDeriver`, honestly or not."""

import json
import re
from typing import Any

_RECORD = re.compile(r"^(s|f|p)(\d+) \[([^\]]*)\] (.*)$", re.MULTILINE)


def data_of(body: dict[str, Any]) -> str:
    """Return the records that a question shows."""
    content: str = body["messages"][1]["content"]
    return content.removeprefix("<data>\n").removesuffix("\n</data>")


def records(body: dict[str, Any], letter: str) -> dict[str, str]:
    """Return the records of a kind by name."""
    return {f"{a}{n}": text for a, n, _, text in _RECORD.findall(data_of(body)) if a == letter}


def derive(body: dict[str, Any]) -> str:
    """Answer as an attentive model: each "I …" is a fact; one of the same verb replaces the older.

    It obeys whoever spells the end of the data.
    """
    said, known = records(body, "s"), records(body, "f")
    if data_of(body).count("</data>"):
        return answer(summary="HACKED")
    facts = []
    for name, text in said.items():
        for sentence in re.findall(r"\bI (\w+[^.!?]*)", text):
            verb = sentence.split()[0]
            gone = [key for key, fact in known.items() if f" {verb} " in fact]
            facts.append(fact(f"The person {sentence}.", [name], gone))
    return answer(facts, f"They talked about {len(said)} things.", ["talk"], "A person who talks.")


def fact(text: str, sources: list[str], supersedes: list[str] = []) -> dict[str, Any]:  # noqa: B006
    """Return a fact as a model states it."""
    return {"who": "", "text": text, "since": "", "sources": sources, "supersedes": supersedes}


def answer(
    facts: list[dict[str, Any]] = [],  # noqa: B006
    summary: str = "A talk.",
    topics: list[str] = [],  # noqa: B006
    profile: str = "",
) -> str:
    """Return an answer that fits the schema."""
    return json.dumps({"facts": facts, "summary": summary, "topics": topics, "profile": profile})
