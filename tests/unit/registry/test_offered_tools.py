"""The tools that are offered: one set of names, made of what providers declare."""

import json
from typing import Any

import pytest
from helpers.providers.tooling import schema
from memorybus.registry import tools, tools_note
from memorybus.registry.tools import MAX_TOOLS, DeclaredTools, Tool


def declared(*schemas: Any, reading: tuple[str, ...] = ()) -> DeclaredTools:
    """Return a declaration."""
    return DeclaredTools(tuple(schemas), reading)


def names(**providers: DeclaredTools) -> list[str]:
    """Return the offered names."""
    return [one["name"] for one in tools.collect_tools(providers).schemas()]


def test_a_name_that_one_provider_has_is_offered_as_it_is():
    """No prefix where nothing collides; the schema is the provider's own."""
    found = tools.collect_tools({"a": declared(schema("find"), reading=("find",))})

    assert found.schemas() == [schema("find")]
    assert found.named("find") == Tool("find", "a", "find", writes=False)
    assert found.named("gone") is None


def test_names_that_collide_are_prefixed_with_their_instance():
    """Both are prefixed, so that none looks like the other's; each call finds its own."""
    found = tools.collect_tools(
        {"a": declared(schema("find"), schema("add")), "b:c": declared(schema("find"))}
    )

    assert [tool.offered for tool, _ in found.pairs()] == ["a_find", "add", "b_c_find"]
    assert found.named("b_c_find") == Tool("b_c_find", "b:c", "find", writes=True)


def test_a_prefixed_name_fits_what_models_take():
    """At most 64 plain characters, whatever an instance is called."""
    long = "n" * 64
    found = names(**{"é" * 30: declared(schema(long)), "b": declared(schema(long))})

    assert found == ["_" * 31 + "n" * 33, "b_" + "n" * 62]


def test_a_name_that_is_taken_is_left_out(caplog):
    """Two tools never share a name: the later one is left out, and that is logged."""
    found = names(
        a=declared(schema("find"), schema("b_find")), b=declared(schema("find")), c=declared()
    )

    assert found == ["a_find", "b_find"]
    assert "'find' is not offered: its name is taken" in caplog.text


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({}, "a name has"),
        (7, "a name has"),
        (None, "a name has"),
        ({"type": "function", "function": "find"}, "a name has"),
        (schema("x") | {"name": ["x"]}, "a name has"),
        (schema("no spaces"), "a name has"),
        (schema("n" * 65), "a name has"),
        (schema("x") | {"name": 7}, "a name has"),
        (schema("x") | {"name": "a\nb"}, "a name has"),
        (schema("x", description=None), "no description"),
        (schema("x", parameters=[]), "not a JSON schema"),
        (schema("x", parameters={"type": "string"}), "not a JSON schema"),
    ],
)
def test_a_malformed_schema_is_left_out(bad, why, caplog):
    """A provider's mistake costs that tool, not the others, and is logged."""
    assert names(a=declared(bad, schema("good"))) == ["good"]
    assert why in caplog.text


def test_a_wrapped_schema_is_unwrapped_and_kept_to_what_is_known():
    """OpenAI's outer object is optional; unknown fields never reach the model's interface."""
    wrapped = {"type": "function", "function": schema("find", strict=True, x="y")}

    assert tools.collect_tools({"a": declared(wrapped)}).schemas() == [schema("find")]


@pytest.mark.parametrize("none", [{}, {"parameters": None}, {"parameters": {}}])
def test_a_tool_that_names_no_parameters_takes_none(none):
    """Hermes offers such a tool as it is; every model's interface takes an empty object."""
    given = {"name": "now", "description": "Tell the time."} | none
    (found,) = tools.collect_tools({"a": declared(given)}).schemas()

    assert found["parameters"] == {"type": "object", "properties": {}}


def test_a_tool_that_is_described_twice_is_offered_once():
    """One provider's two schemas of one name are no collision of providers."""
    assert names(a=declared(schema("find"), schema("find"))) == ["find"]


def test_the_number_of_tools_is_bounded():
    """No more than a model's interface takes (G10)."""
    many = [schema(f"t{i}") for i in range(MAX_TOOLS + 5)]

    assert names(a=declared(*many)) == [f"t{i}" for i in range(MAX_TOOLS)]


def test_a_malformed_schema_costs_no_other_in_the_file(tmp_path):
    """What one provider declares is no reason for an agent to have no tools at all (G9)."""
    path = tmp_path / "mb.json"
    tools_note.write_note(path, {"a": declared("no schema"), "b": declared(schema("find"))}, "1")

    assert [one["name"] for one in tools.collect_tools(tools_note.read_note(path)).schemas()] == [
        "find"
    ]


def test_the_file_gives_back_what_was_noted(tmp_path):
    """An agent reads what a background thread wrote; the same again is not written."""
    path = tmp_path / "tools" / "mb.json"
    noted = {"b": declared(schema("find"), reading=("find",)), "a": declared(schema("add"))}

    assert tools_note.read_note(path) == {}
    assert tools_note.write_note(path, noted, "1")
    assert not tools_note.write_note(path, noted, "2")
    assert list(tools_note.read_note(path).items()) == list(noted.items())
    assert [one.name for one in path.parent.iterdir()] == ["mb.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a": {"schemas": 3}}', "\udc80", "[" * 100_000, json.dumps({"a": 1})]
)
def test_a_file_that_cannot_be_read_offers_nothing(text, tmp_path, caplog):
    """A damaged note costs the tools until it is written again, and says so (G9)."""
    path = tmp_path / "mb.json"
    path.write_bytes(text.encode(errors="surrogateescape"))

    assert tools_note.read_note(path) == {}
    assert str(path) in caplog.text
