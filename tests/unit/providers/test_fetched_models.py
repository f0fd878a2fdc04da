"""A model that is named by its name is fetched at set-up, and at no other time."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.services.models import model
from memorybus.errors import MissingProvider, Unavailable
from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding import choice, models
from memorybus_providers.embedding.options import MeaningOptions, cache_of, read_meaning
from memorybus_providers.holographic import HolographicProvider

NAME = "sentence-transformers/all-MiniLM-L6-v2"
SOURCE = "models--Qdrant--all-MiniLM-L6-v2-onnx"
"""The folder in which fastembed keeps that model."""


def named(home: Path) -> ProviderConfig:
    """Return the configuration of an instance that names the model."""
    options = {"embedder": f"fastembed:{NAME}"}
    return ProviderConfig(name="notes", home=home, options=options, models=home / "models")


def test_a_model_that_was_not_fetched_is_not_fetched_at_run_time(tmp_path, monkeypatch):
    """The first text that needs the model gets an error that names the next command."""
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("it asks the network"))
    config = named(tmp_path)
    embedder = choice.make_embedder(read_meaning(config, MeaningOptions), cache_of(config))

    with pytest.raises(Unavailable, match=r"is not on this host: .*memorybus provider setup"):
        embedder.embed(["Nora lives in Bergen"])


@pytest.mark.parametrize("act", ["open", "fetch"])
def test_a_missing_library_is_named_with_what_installs_it(act, tmp_path, monkeypatch):
    """Without fastembed the error names the extra."""
    monkeypatch.setattr(models, "find_spec", lambda name: None if name == "fastembed" else name)
    monkeypatch.setitem(__import__("sys").modules, "fastembed", None)

    with pytest.raises(MissingProvider, match=r"needs fastembed.*\[fastembed\]"):
        getattr(HolographicProvider(named(tmp_path)), act)()


@pytest.mark.slow(reason="loads fastembed")
def test_an_unknown_name_cannot_be_fetched(tmp_path):
    """Set-up fails for a name that fastembed does not know, before any request."""
    config = ProviderConfig(name="notes", home=tmp_path, options={"embedder": "fastembed:nobody/x"})

    with pytest.raises(Unavailable, match="nobody/x cannot be fetched"):
        HolographicProvider(config).fetch()


@pytest.mark.servers
def test_a_fetched_model_makes_vectors(tmp_path):
    """What stands in fastembed's cache is used without a network: near texts have near vectors."""
    config = named(tmp_path)
    revision = cache_of(config) / SOURCE / "snapshots" / "1"
    shutil.copytree(model("minilm"), revision)
    (revision.parents[1] / "refs").mkdir()
    (revision.parents[1] / "refs" / "main").write_text("1")
    embedder = choice.make_embedder(read_meaning(config, MeaningOptions), cache_of(config))

    asked = embedder.embed(["Where does Nora live?"], asked=True)[0]
    near, far = embedder.embed(["Nora's home is in Bergen", "The oven is broken"])

    assert asked.dtype == np.float32
    assert asked @ near > asked @ far + 0.2
