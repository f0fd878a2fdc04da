"""What goes wrong between the provider and Hindsight, and what it leads to."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.providers.hindsight_opening import Opened
from helpers.services.fake_hindsight import FakeHindsight
from helpers.services.troubles import Trouble
from memorybus.errors import (
    ConfigError,
    MissingProvider,
    Permanent,
    ProviderError,
    Transient,
    Unavailable,
)
from memorybus.events import Event, MemoryWritten, TurnCompleted
from memorybus_providers.base import ProviderConfig
from memorybus_providers.contract.samples import HERE, feed, hook_context, recall_context, steps
from memorybus_providers.hindsight import HindsightProvider

TURN = TurnCompleted(user="I keep a wolpertinger.", assistant="Noted.", ordinal=0)
NOTE = MemoryWritten(action="add", store="user", content="Keeps a wolpertinger.")
MODES = ({}, {"turns_per_document": 5}, {"queued": True})


@pytest.mark.parametrize("options", MODES, ids=("event", "session", "queued"))
@pytest.mark.parametrize("event", [TURN, NOTE], ids=("turn", "note"))
@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ("lost", Transient),
        ("half", Transient),
        ("strange", Transient),
        ("slow", Transient),
        (500, Transient),
        (409, Transient),
        (503, Unavailable),
        (401, Unavailable),
        (422, Permanent),
    ],
)
def test_a_write_that_failed_and_comes_again_is_there_once(
    hindsight_fake: FakeHindsight,
    open_hindsight: Opened,
    options: dict[str, object],
    event: Event,
    trouble: Trouble,
    kind: type[ProviderError],
) -> None:
    """Whatever befell a write, its error says what to do, and sent again it is stored once (G4)."""
    provider = open_hindsight(**options)
    (step,) = steps(event)
    hindsight_fake.troubles = [trouble]
    ctx = hook_context(step, deadline=0.5 if trouble == "slow" else 30.0)
    hook = provider.sync_turn if event is TURN else provider.on_memory_write
    with pytest.raises(ProviderError) as failed:
        hook(event, ctx)  # type: ignore[operator]
    assert type(failed.value) is kind
    hindsight_fake.gate.set()
    feed(provider, [step])
    assert len(hindsight_fake.texts()) == 1
    assert len(provider.prefetch("wolpertinger", recall_context(HERE))) == 1


def test_a_rate_limit_is_kept_without_asking_again(
    hindsight_fake: FakeHindsight, open_hindsight: Opened
) -> None:
    """After a 429 no request is spent until the time that the service named is over."""
    provider = open_hindsight()
    hindsight_fake.troubles, hindsight_fake.retry_after = [429], "3000"
    (step,) = steps(TURN)
    with pytest.raises(Unavailable, match="429"):
        provider.sync_turn(TURN, hook_context(step))
    asked = len(hindsight_fake.keys)
    with pytest.raises(Unavailable, match="pause"):
        provider.sync_turn(TURN, hook_context(step))
    assert len(hindsight_fake.keys) == asked


def test_a_server_that_is_away_is_unavailable(open_hindsight: Opened) -> None:
    """A refused connection is no event's fault."""
    provider = open_hindsight(base_url="http://127.0.0.1:1")
    with pytest.raises(Unavailable):
        provider.prefetch("wolpertinger", recall_context(HERE))


def test_a_wrong_address_is_not_taken_for_an_empty_bank(
    hindsight_fake: FakeHindsight, open_hindsight: Opened
) -> None:
    """A 404 that is not Hindsight's own about a bank says that the address is wrong."""
    provider = open_hindsight(base_url=f"{hindsight_fake.url}/elsewhere")
    with pytest.raises(Unavailable, match="404"):
        provider.prefetch("wolpertinger", recall_context(HERE))


def test_the_key_is_sent_and_in_no_error(
    hindsight_fake: FakeHindsight, open_hindsight: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key comes from the environment, goes to the server, and is masked where it is repeated."""
    monkeypatch.setenv("HINDSIGHT_TEST_KEY", "very-secret")
    provider = open_hindsight(api_key_env="HINDSIGHT_TEST_KEY")
    hindsight_fake.troubles = [401]
    (step,) = steps(TURN)
    with pytest.raises(Unavailable) as failed:
        provider.sync_turn(TURN, hook_context(step))
    assert hindsight_fake.keys == ["Bearer very-secret"]
    assert "***" in str(failed.value)
    assert "very-secret" not in f"{failed.value} {provider.config!r}"


def test_a_key_in_a_file_that_others_may_read_is_refused(
    open_hindsight: Opened, tmp_path: Path
) -> None:
    """A file with a key is its owner's alone."""
    file = tmp_path / "key"
    file.write_text("very-secret")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        open_hindsight(api_key_file=str(file))


def test_a_refusal_does_not_repeat_what_was_said(
    hindsight_fake: FakeHindsight, open_hindsight: Opened
) -> None:
    """The server's 422 repeats the text that it refuses; the error does not."""
    provider = open_hindsight()
    hindsight_fake.troubles = [422]
    with pytest.raises(Permanent, match="told to refuse") as failed:
        feed(provider, steps(TURN))
    assert "wolpertinger" not in str(failed.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "localhost"}, "http"),
        ({"prefix": "Ours"}, "prefix"),
        ({"timeout": 0.0}, "timeout"),
        ({"turns_per_document": 0}, "turns_per_document"),
        ({"turns_per_document": 2, "queued": True}, "exclude"),
        ({"recall_tokens": 0}, "recall_tokens"),
        ({"recall_budget": "huge"}, "recall_budget"),
        ({"strange": 1}, "strange"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, object], said: str) -> None:
    """An option that cannot be meant is refused before anything is made."""
    with pytest.raises(ConfigError, match=said):
        HindsightProvider(ProviderConfig(name="hs", home=Path("/nowhere"), options=options))


def test_without_its_client_the_remedy_is_named(
    open_hindsight: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who lacks the extra is told how to install it."""
    monkeypatch.setitem(sys.modules, "memorybus_providers.hindsight.calls", None)
    with pytest.raises(MissingProvider, match=r"memorybus\[hindsight\]"):
        open_hindsight()


def test_the_client_is_not_imported_before_an_instance_is_opened() -> None:
    """Looking at the provider's options loads no client."""
    code = (
        "import sys, memorybus_providers.hindsight as h; h.HindsightProvider.get_config_schema();"
        "sys.exit('hindsight_client' in sys.modules or 'aiohttp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
