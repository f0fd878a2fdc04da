"""A scripted conversation: the calls a model makes with the tools as they are described to it."""

from typing import Any

from memorybus.events import Event, ToolCalled
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import DAY, context, feed, turn

MONDAY = 1_750_000_000_000


class Model:
    """A model in a session: it reads at once, and writes by events, as the bus has it."""

    def __init__(self, provider: HolographicProvider, session: str, at: int) -> None:
        self.provider = provider
        self.session = session
        self.at = at
        self.events = at // DAY % 1000 * 100

    def hear(self, *events: Event) -> list[str | None]:
        """Apply events of this session."""
        first = self.events + 1
        self.events += len(events)
        return feed(
            self.provider, events, first=first, session=self.session, at=self.at, root=self.session
        )

    def read(self, tool: str, **arguments: Any) -> Any:
        """Call a reading tool."""
        assert tool in self.provider.capabilities.reading_tools
        result = self.provider.handle_tool_call(tool, arguments, context(99_000))
        assert result["ok"] is True
        return result

    def write(self, tool: str, **arguments: Any) -> None:
        """Call a writing tool."""
        assert tool not in self.provider.capabilities.reading_tools
        self.hear(ToolCalled(provider="holographic", tool=tool, arguments=arguments))


def test_a_conversation_with_tools(provider):
    """What the model keeps and is told is found again by every tool that is meant for it."""
    monday = Model(provider, "monday", MONDAY)
    monday.hear(
        turn("I have to plan the regatta with my cousin Ivo Lindt", "When is it?"),
        turn("On the ninth. The boat belongs to the Alster club", "Noted."),
        turn("And Mr. Lindt gets seasick", "Poor him."),
    )
    monday.write(
        "memory_add",
        content="Ivo Lindt brings the spare sails for the regatta",
        category="project",
        tags=["sailing"],
    )

    friday = Model(provider, "friday", MONDAY + 4 * DAY)
    friday.hear(turn("What do we know about my cousin?"))
    cousin = friday.read("memory_probe", entity="Lindt")
    assert [one["text"] for one in cousin["results"]] == [
        "Ivo Lindt brings the spare sails for the regatta",
        "And Mr. Lindt gets seasick",
        "I have to plan the regatta with my cousin Ivo Lindt",
    ]

    (filed,) = friday.read("memory_list", category="project", min_trust=0.5)["results"]
    friday.write("memory_feedback", fact_id=filed["id"], helpful=True)
    assert friday.read("memory_list", min_trust=0.52)["results"][0]["trust"] == 0.55

    friday.write(
        "memory_correct", old_text="brings the spare sails", content="Ivo Lindt brings the anchor"
    )
    sails = "Ivo Lindt brings the spare sails"
    right, rival = friday.read("memory_contradict", statement=sails)["results"]
    assert (right["text"], rival["id"]) == ("Ivo Lindt brings the anchor", filed["id"])
    brought = friday.read("memory_search", query="What does Ivo Lindt bring?")["results"]
    assert (brought[0]["text"], brought[0]["before"]) == (
        "Ivo Lindt brings the anchor",
        "Ivo Lindt brings the spare sails for the regatta",
    )
    assert [one["text"] for one in brought if "until" in one] == [brought[0]["before"]]

    (talk,) = friday.read("session_search", query="Who gets seasick?", around=1)["sessions"]
    assert talk["session"] == "monday"
    assert [(one["text"], one["hit"]) for one in talk["said"]] == [
        ("Noted.", False),
        ("And Mr. Lindt gets seasick", True),
        ("Poor him.", False),
    ]
    assert friday.read("memory_search", query="spare sails", category="tool")["results"] == []
    assert friday.read("memory_search", query="spare sails", min_trust=0.9)["results"] == []
