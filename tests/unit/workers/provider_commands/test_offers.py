"""What kinds of providers there are, as the set-up dialogue learns of them."""

import pytest
from memorybus.errors import ConfigError
from memorybus.processes.reports import OptionField
from memorybus_providers.base import ProviderConfig
from memorybus_providers.registry import check_options, registered_kinds
from memorybus_workers.provider_commands.offers import list_offers


def test_every_registered_kind_is_offered():
    """Each says what it is, and what it promises; a missing library is told, not raised."""
    found = {offer.kind: offer for offer in list_offers()}

    assert set(found) == set(registered_kinds())
    assert all(offer.missing or (offer.summary and offer.delivery) for offer in found.values())
    assert found["holographic"].delivery == "transactional"
    assert found["holographic"].tools


def test_options_are_read_with_their_types():
    """A schema's entry says whether it is a secret, and its default what kind of value it has."""
    (offer,) = list_offers(["holographic"])
    options = {option.key: option for option in offer.options or ()}

    assert options["embedder_key"].secret
    assert options["embedder_batch"].kind_of_value == "number"
    assert options["embedder"].kind_of_value == "text"


def test_a_kind_that_is_not_there_says_why():
    """The remedy is the registry's own."""
    (offer,) = list_offers(["holografic"])

    assert "did you mean 'holographic'" in offer.missing


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        (OptionField("a", default=True), "flag"),
        (OptionField("a", default=1.5), "number"),
        (OptionField("a", default=[]), "list"),
        (OptionField("a"), "text"),
        (OptionField("a", default="", type="number"), "number"),
    ],
)
def test_what_an_option_is(field, kind):
    """The type that the schema names counts, then the default's."""
    assert field.kind_of_value == kind


def test_a_value_must_be_one_of_the_choices(tmp_path):
    """Another value is refused with those there are."""
    schema = [{"key": "mode", "description": "how", "choices": ["fast", "deep"]}]
    check_options(schema, ProviderConfig(name="mine", home=tmp_path, options={"mode": "deep"}))

    with pytest.raises(ConfigError, match="'mode' must be one of: fast, deep"):
        check_options(schema, ProviderConfig(name="mine", home=tmp_path, options={"mode": "x"}))
