"""Search by meaning with real models on this machine."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from helpers.services.models import e5_server, model
from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import feed, opened, texts, turn
from unit.holographic.meaning.meaning_feeding import PATIENT, await_filled

pytestmark = pytest.mark.servers

SAID = (
    "My daughter started kindergarten in September",
    "We moved to a flat by the river last spring",
    "The doctor told me to avoid peanuts",
    "I finally sold the old station wagon",
    "The quarterly report is due every first Monday",
    "Our router reboots itself at night",
)
PARAPHRASES = {
    "Which apartment is mine?": "We moved to a flat by the river last spring",
    "Which foods are dangerous for me?": "The doctor told me to avoid peanuts",
    "Do I still own a car?": "I finally sold the old station wagon",
    "Why is the wifi down so often?": "Our router reboots itself at night",
}
"""Questions, and what answers them without a common word."""

FOREIGN = {
    "Why can I not eat walnuts?": "Ich vertrage leider keine Nüsse, davon bekomme ich Ausschlag.",
    "Where does my sister live?": "Mi hermana se mudó a Sevilla el año pasado.",
    "Which instrument do I play?": "Je joue du violon depuis mon enfance.",
    "What is my cat called?": "我的猫叫小白。",
    "When is my dentist appointment?": "歯医者の予約は金曜日の午後三時です。",
    "What is my favourite food?": "나는 김치찌개를 제일 좋아해요.",
    "Who is my boss?": "Моего начальника зовут Игорь Петрович.",
    "Where did I park the car?": "Arabayı istasyonun arkasına park ettim.",
    "How old is my son?": "عمر ابني سبع سنوات.",
}
"""English questions, and what answers them in German, Spanish, French, Chinese, Japanese, Korean,
Russian, Turkish and Arabic."""


@contextmanager
def local(home: Path, directory: Path) -> Iterator[HolographicProvider]:
    """Open a provider with a model on this machine."""
    with opened(home, embedder=str(directory), embedder_wait=PATIENT) as provider:
        yield provider


def test_a_paraphrase_without_a_common_word_is_found(tmp_path):
    """A model in a directory answers what words cannot, with the right fact first."""
    with opened(tmp_path / "words") as plain, local(tmp_path, model("minilm")) as provider:
        feed(plain, [turn(text) for text in SAID])
        feed(provider, [turn(text) for text in SAID])
        await_filled(provider, len(SAID))

        assert [texts(plain, question) for question in PARAPHRASES] == [[]] * len(PARAPHRASES)
        found = {question: texts(provider, question)[:1] for question in PARAPHRASES}
        assert found == {question: [fact] for question, fact in PARAPHRASES.items()}


def test_what_nobody_spoke_of_is_not_answered(tmp_path):
    """A question about something else gets nothing, though some fact is always the nearest."""
    with local(tmp_path, model("minilm")) as provider:
        feed(provider, [turn(text) for text in SAID])
        await_filled(provider, len(SAID))

        for question in ("Who painted the ceiling of the chapel?", "Convert seven miles"):
            assert texts(provider, question) == []


def test_another_model_in_the_same_directory_is_noticed(tmp_path):
    """Vectors are known by a digest of the model's files, so that no two models are compared."""
    directory = tmp_path / "model"
    directory.mkdir()
    for path in model("minilm").glob("*.*"):
        (directory / path.name).write_bytes(path.read_bytes())
    with local(tmp_path, directory) as provider:
        feed(provider, [turn(SAID[1])])
        await_filled(provider, 1)
    tokenizer = directory / "tokenizer.json"
    tokenizer.write_text(f"{tokenizer.read_text()}\n")

    with local(tmp_path, directory) as provider:
        assert texts(provider, "Which apartment is mine?") == []
        assert texts(provider, "by the river") == [SAID[1]]


def test_the_model_of_this_host_is_used_unless_it_is_declined(tmp_path):
    """A model in ``models/default`` needs no option; `none` compares words alone."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "default").symlink_to(model("minilm"))

    def found(options: dict[str, object]) -> list[str]:
        config = ProviderConfig(
            name="holographic", home=tmp_path / "home", models=tmp_path / "models",
            options={"embedder_wait": PATIENT, **options},
        )  # fmt: skip
        with ExitStack() as until_then:
            provider = HolographicProvider(config)
            provider.open()
            until_then.callback(provider.shutdown)
            feed(provider, [turn(SAID[1])])
            if not options:
                await_filled(provider, 1)
            return texts(provider, "Which apartment is mine?")

    assert found({}) == [SAID[1]]
    assert found({"embedder": "none"}) == []


def test_english_questions_find_what_was_said_in_other_languages(tmp_path):
    """With a multilingual model the language in which something was said does not matter."""
    with e5_server() as address:
        options = {"embedder": address, "embedder_model": "e5-query", "embedder_wait": PATIENT}
        with opened(tmp_path, **options) as provider:
            feed(provider, [turn(text) for text in FOREIGN.values()])
            await_filled(provider, len(FOREIGN))

            found = {question: texts(provider, question)[:1] for question in FOREIGN}
            assert found == {question: [fact] for question, fact in FOREIGN.items()}
            assert texts(provider, "Why can I not eat walnuts?", RecallScope("coder", "eve")) == []
