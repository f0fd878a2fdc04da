"""Rules for what goes wrong between a provider and a server that fails as it is told."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from memorybus.errors import ConfigError, Permanent, ProviderError, Transient, Unavailable
from memorybus.events import MemoryWritten, TurnCompleted
from memorybus_providers.contract.samples import HERE, feed, hook_context, recall_context, steps
from memorybus_providers.dispatch import bind

TURN = TurnCompleted(user="I keep a wolpertinger.", assistant="Noted.", ordinal=0)
NOTE = MemoryWritten(action="add", store="user", content="Keeps a wolpertinger.")


class ServiceFailures:
    """Subclass it; define the fixtures `open_one` and `server`, a `TroubledServer` with `texts`.

    Attributes:
        key: how a key is sent, ``{}`` for the key.
        elsewhere: a path below the server's address at which nothing is.
        module: the provider's folder.
        heavy: modules that are loaded by no look at options.
        options: of the instances whose writes fail.
    """

    key: str
    elsewhere: str
    module: str
    heavy: tuple[str, ...]
    options: ClassVar[Mapping[str, Any]] = {}

    @pytest.mark.parametrize("event", [TURN, NOTE], ids=("turn", "note"))
    @pytest.mark.parametrize(
        ("trouble", "kind"),
        [
            ("lost", Transient),
            ("half", Transient),
            ("slow", Transient),
            (500, Transient),
            (409, Transient),
            (503, Unavailable),
            (401, Unavailable),
            (422, Permanent),
        ],
    )
    def test_a_write_that_failed_and_comes_again_is_there_once(
        self, server, open_one, event, trouble, kind
    ):
        """Whatever befell a write, its error tells what to do; done again, it is there once (G4).

        What is in doubt is asked for first where that is how the provider delivers.
        """
        provider = open_one(**self.options)
        (step,) = steps(event)
        server.troubles = [trouble]
        ctx = hook_context(step, deadline=0.5 if trouble == "slow" else 30.0)
        with pytest.raises(ProviderError) as failed:
            bind(provider)(event, ctx)
        assert type(failed.value) is kind
        server.gate.set()
        if provider.delivery != "lookup":
            feed(provider, [step])
        else:
            held = provider.knows(step.event_id, ctx)
            assert held is (trouble in {"lost", "half", "slow"})
            if not held:
                feed(provider, [step])
        assert len(server.texts()) == 1
        assert len(provider.prefetch("wolpertinger", recall_context(HERE))) == 1

    def test_a_rate_limit_is_kept_without_asking_again(self, server, open_one):
        """After a 429 no request is spent until the time that the service named is over."""
        provider = open_one()
        server.troubles, server.retry_after = [429], "3000"
        (step,) = steps(TURN)
        with pytest.raises(Unavailable, match="429"):
            provider.sync_turn(TURN, hook_context(step))
        asked = len(server.keys)
        with pytest.raises(Unavailable, match="pause"):
            provider.sync_turn(TURN, hook_context(step))
        assert len(server.keys) == asked

    def test_a_server_that_is_away_is_unavailable(self, open_one):
        """A refused connection is no event's fault."""
        with pytest.raises(Unavailable):
            open_one(base_url="http://127.0.0.1:1").prefetch("stamps", recall_context(HERE))

    def test_a_wrong_address_is_not_taken_for_an_empty_store(self, server, open_one):
        """A 404 of a route says that the address is wrong, and not that nothing is kept."""
        provider = open_one(base_url=f"{server.url}/{self.elsewhere}")
        with pytest.raises(Unavailable, match="404"):
            provider.prefetch("stamps", recall_context(HERE))

    def test_the_key_is_sent_and_in_no_error(self, server, open_one, monkeypatch):
        """A key of the environment goes to the server, and is masked where it is repeated."""
        monkeypatch.setenv("SERVICE_TEST_KEY", "very-secret")
        provider = open_one(api_key_env="SERVICE_TEST_KEY")
        server.troubles = [401]
        with pytest.raises(Unavailable) as failed:
            feed(provider, steps(TURN))
        assert server.keys == [self.key.format("very-secret")]
        assert "***" in str(failed.value)
        assert "very-secret" not in f"{failed.value} {provider.config!r}"

    def test_a_key_in_a_file_that_others_may_read_is_refused(self, open_one, tmp_path):
        """A file with a key is its owner's alone."""
        file = tmp_path / "key"
        file.write_text("very-secret")
        file.chmod(0o644)
        with pytest.raises(ConfigError, match="chmod 600"):
            open_one(api_key_file=str(file))

    def test_a_refusal_does_not_repeat_what_was_said(self, server, open_one):
        """The server's 422 repeats the text that it refuses; the error does not."""
        provider = open_one()
        server.troubles = [422]
        with pytest.raises(Permanent, match="told to refuse") as failed:
            feed(provider, steps(TURN))
        assert "wolpertinger" not in str(failed.value)

    def test_no_client_is_imported_before_an_instance_is_opened(self):
        """Looking at the provider's options loads no client."""
        code = (
            f"import sys, {self.module} as m;"
            "[k.get_config_schema() for k in vars(m).values() if isinstance(k, type)];"
            f"sys.exit(any(name in sys.modules for name in {self.heavy!r}))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
