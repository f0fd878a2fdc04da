"""Sends every event to an address of the operator: signed, in order, once under its id.

The signature is that of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over
``id.timestamp.body``. ``urllib3`` is imported when an instance is opened.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import msgspec
from memorybus.errors import ConfigError, MissingProvider, Permanent, install_command
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Derived,
    Event,
    MemoryCurated,
    MemoryWritten,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
)
from msgspec import Meta

from memorybus_providers.base import Capabilities, HookContext, MemoryProvider, ProviderConfig
from memorybus_providers.options import Options, option_rows, read_options
from memorybus_providers.remote.options import KeyFile, KeyVariable, address, address_rule, api_key

if TYPE_CHECKING:
    from memorybus_providers.remote.http import HttpService

_EVENTS: Final[frozenset[type[Event]]] = frozenset({
    SessionStarted, TurnCompleted, MemoryWritten, MemoryCurated, SessionSwitched,
    ContextCompressing, Delegated, SessionEnded, Derived,
})  # fmt: skip
_STANDARD_SECRET = "whsec_"  # noqa: S105  the prefix of a secret in base64


class WebhookOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a webhook."""

    base_url: Annotated[
        str, address("https://example.org/hooks/memory", "the address that takes the events")
    ]
    api_key_env: KeyVariable = ""  # see `remote.options.api_key`
    api_key_file: KeyFile = ""  # see `remote.options.api_key`
    timeout: Annotated[float, Meta(description="seconds for one request")] = 10.0
    allow_private: Annotated[
        bool, Meta(description="whether the address may be in a private network, or this host")
    ] = False

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {
            **address_rule(self.base_url),
            "name api_key_env or api_key_file: events are signed with that key": bool(
                self.api_key_env or self.api_key_file
            ),
            "timeout must be positive": self.timeout > 0,
        }


class SentEvent(msgspec.Struct, frozen=True):
    """The body of a request. `n` grows within a partition, and events of a key are in one."""

    id: str
    type: str
    at: int
    partition: int
    n: int
    scope: Scope
    session: SessionRef
    event: Event


def signing_key(secret: str) -> bytes:
    """Return the bytes of a secret; after ``whsec_`` it is base64.

    Raises:
        ConfigError: it is not.
    """
    if not secret.startswith(_STANDARD_SECRET):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_STANDARD_SECRET), validate=True)
    except binascii.Error as error:
        raise ConfigError("a webhook's key that begins with whsec_ must be base64") from error


def signature(key: bytes, event_id: str, seconds: int, body: bytes) -> str:
    """Return the signature of a request that is sent at a time (Unix seconds)."""
    signed = b"%b.%d.%b" % (event_id.encode(), seconds, body)
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


class WebhookProvider(MemoryProvider):
    """Posts each event as JSON. It recalls nothing, and erases nothing at the receiver."""

    kind = "webhook"
    delivery = "keyed"
    capabilities = Capabilities(recall=False, concurrent=True, handles=_EVENTS)
    fresh_options: ClassVar[tuple[str, ...]] = ("base_url",)

    def __init__(self, config: ProviderConfig) -> None:
        """Read the options; nothing is sent.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self._options = read_options(config, WebhookOptions)
        self.time_limits = MappingProxyType(dict.fromkeys(_EVENTS, self._options.timeout))
        self._service: HttpService | None = None
        self._key = b""

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options."""
        return option_rows(WebhookOptions)

    def open(self) -> None:
        """Read the key; the first event connects.

        Raises:
            ConfigError: the key is missing or malformed.
            MissingProvider: ``urllib3`` is not installed.
        """
        try:
            from memorybus_providers.remote.http import HttpService
        except ImportError as error:
            raise MissingProvider(
                f"provider {self.config.name} lacks a package ({error}); run: "
                f"{install_command(self.kind)}"
            ) from error
        secret = api_key(self.config)
        self._key = signing_key(secret)
        self._service = HttpService(
            *(self._options.base_url, {}, secret, self.config.clock),
            name="the webhook",
            public_only=not self._options.allow_private,
        )

    def shutdown(self) -> None:
        """Close the connections."""
        if self._service is not None:
            self._service.close()
            self._service = None

    # -- write hooks --------------------------------------------------------------------------

    def initialize(self, event: SessionStarted, ctx: HookContext) -> None:
        """Send it."""
        self._send(event, ctx)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Send it."""
        self._send(event, ctx)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Send it."""
        self._send(event, ctx)

    def on_memory_curated(self, event: MemoryCurated, ctx: HookContext) -> None:
        """Send it."""
        self._send(event, ctx)

    def on_session_switch(self, event: SessionSwitched, ctx: HookContext) -> None:
        """Send it; ``retracted`` names the events that the receiver should take back."""
        self._send(event, ctx)

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Send it, and contribute nothing."""
        self._send(event, ctx)
        return ""

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Send it."""
        self._send(event, ctx)

    def on_session_end(self, event: SessionEnded, ctx: HookContext) -> None:
        """Send it."""
        self._send(event, ctx)

    def on_derived(self, event: Derived, ctx: HookContext) -> None:
        """Send it."""
        self._send(event, ctx)

    def _send(self, event: Event, ctx: HookContext) -> None:
        """Send one event; any answer of 2xx means that the receiver has it.

        Raises:
            Unavailable, Transient, Permanent: see `remote.http`.
        """
        if self._service is None:
            raise Permanent(f"provider {self.config.name} is not open")
        body = msgspec.json.encode(
            SentEvent(
                id=ctx.event_id,
                type=type(event).__name__,
                at=ctx.at,
                partition=ctx.position.partition,
                n=ctx.position.n,
                scope=ctx.scope,
                session=ctx.session,
                event=event,
            )
        )
        seconds = self.config.clock.now_ms() // 1000
        headers = {
            "Idempotency-Key": ctx.event_id,
            "webhook-id": ctx.event_id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": signature(self._key, ctx.event_id, seconds, body),
        }
        self._service.request("POST", "", ctx.deadline, body, headers)
