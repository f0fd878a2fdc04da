"""Rules for what goes wrong between a provider and a server that fails as it is told."""

import subprocess
import sys
from pathlib import Path

import pytest
from memorybus.errors import ConfigError, Permanent, Unavailable
from memorybus.events import MemoryWritten, TurnCompleted
from memorybus_providers.base import MemoryProvider
from memorybus_providers.contract.samples import HERE, feed, hook_context, recall_context, steps

from helpers.providers.service_opening import Opener
from helpers.services.troubles import TroubledServer

TURN = TurnCompleted(user="I keep a wolpertinger.", assistant="Noted.", ordinal=0)
NOTE = MemoryWritten(action="add", store="user", content="Keeps a wolpertinger.")


class ServiceFailures:
    """Subclass it, and define the fixtures `server` and `open_one`.

    Attributes:
        key: how a key is sent, ``{}`` for the key.
        elsewhere: a path below the server's address at which nothing is.
        module: the provider's folder.
        heavy: modules that are loaded by no look at options.
    """

    key: str
    elsewhere: str
    module: str
    heavy: tuple[str, ...]

    def test_a_rate_limit_is_kept_without_asking_again(
        self, server: TroubledServer, open_one: Opener[MemoryProvider]
    ) -> None:
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

    def test_a_server_that_is_away_is_unavailable(self, open_one: Opener[MemoryProvider]) -> None:
        """A refused connection is no event's fault."""
        with pytest.raises(Unavailable):
            open_one(base_url="http://127.0.0.1:1").prefetch("stamps", recall_context(HERE))

    def test_a_wrong_address_is_not_taken_for_an_empty_store(
        self, server: TroubledServer, open_one: Opener[MemoryProvider]
    ) -> None:
        """A 404 of a route says that the address is wrong, and not that nothing is kept."""
        provider = open_one(base_url=f"{server.url}/{self.elsewhere}")
        with pytest.raises(Unavailable, match="404"):
            provider.prefetch("stamps", recall_context(HERE))

    def test_the_key_is_sent_and_in_no_error(
        self,
        server: TroubledServer,
        open_one: Opener[MemoryProvider],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A key of the environment goes to the server, and is masked where it is repeated."""
        monkeypatch.setenv("SERVICE_TEST_KEY", "very-secret")
        provider = open_one(api_key_env="SERVICE_TEST_KEY")
        server.troubles = [401]
        with pytest.raises(Unavailable) as failed:
            feed(provider, steps(TURN))
        assert server.keys == [self.key.format("very-secret")]
        assert "***" in str(failed.value)
        assert "very-secret" not in f"{failed.value} {provider.config!r}"

    def test_a_key_in_a_file_that_others_may_read_is_refused(
        self, open_one: Opener[MemoryProvider], tmp_path: Path
    ) -> None:
        """A file with a key is its owner's alone."""
        file = tmp_path / "key"
        file.write_text("very-secret")
        file.chmod(0o644)
        with pytest.raises(ConfigError, match="chmod 600"):
            open_one(api_key_file=str(file))

    def test_a_refusal_does_not_repeat_what_was_said(
        self, server: TroubledServer, open_one: Opener[MemoryProvider]
    ) -> None:
        """The server's 422 repeats the text that it refuses; the error does not."""
        provider = open_one()
        server.troubles = [422]
        with pytest.raises(Permanent, match="told to refuse") as failed:
            feed(provider, steps(TURN))
        assert "wolpertinger" not in str(failed.value)

    def test_no_client_is_imported_before_an_instance_is_opened(self) -> None:
        """Looking at the provider's options loads no client."""
        code = (
            f"import sys, {self.module} as m;"
            "[k.get_config_schema() for k in vars(m).values() if isinstance(k, type)];"
            f"sys.exit(any(name in sys.modules for name in {self.heavy!r}))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
