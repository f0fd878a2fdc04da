"""A static model on disk makes the vectors."""

from pathlib import Path

import numpy as np
import pytest
from helpers.processes.waiting import wait_until
from helpers.services.embedding_server import MEANINGS, embed
from unit.holographic.holographic_feeding import add, feed, opened, texts
from unit.holographic.meaning.meaning_feeding import PATIENT, await_filled


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Write a model whose words are those that have a meaning in the fake service."""
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    words = ["[UNK]", *sorted(MEANINGS)]
    vocabulary = {word: number for number, word in enumerate(words)}
    level = tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(level)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    vectors = embed(words, 64).astype(np.float32)
    vectors[0] = 0
    model2vec.StaticModel(vectors, tokenizer).save_pretrained(str(tmp_path / "tiny"))
    return tmp_path / "tiny"


def test_a_model_on_disk_answers_by_meaning(tmp_path: Path, model: Path) -> None:
    """A directory as embedder finds what shares no word, and names the model by the directory."""
    with opened(tmp_path / "home", embedder=str(model), embedder_wait=PATIENT) as provider:
        feed(provider, [add("we had supper"), add("i bought a sedan")])
        await_filled(provider, 2)

        assert texts(provider, "which vehicle") == ["i bought a sedan"]
        stored = provider.opened.db.execute("select name from meaning_model").fetchall()
        assert stored == [("tiny",)]


def test_a_directory_without_a_model_is_told(tmp_path: Path) -> None:
    """Nothing is downloaded: a path that is not there is named in the report, and words answer."""
    pytest.importorskip("model2vec")
    with opened(tmp_path / "home", embedder=str(tmp_path / "absent")) as provider:
        feed(provider, [add("i bought a sedan")])

        wait_until(lambda: "absent" in provider.report(), "the path is named")
        assert texts(provider, "sedan") == ["i bought a sedan"]
