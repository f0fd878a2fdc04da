"""The webhook provider, by real workers and a real receiver."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes.waiting import wait_until
from helpers.services.webhook_receiver import KEY, webhook_receiver
from helpers.stories.scenario import PATIENT
from memorybus.errors import ConfigError, Unavailable
from memorybus.events import Position, Scope, SessionRef, TurnCompleted
from memorybus_providers.base import HookContext, ProviderConfig
from memorybus_providers.remote import public as public_addresses
from memorybus_providers.remote.public import is_public
from memorybus_providers.webhook import WebhookProvider, signature, signing_key

pytestmark = pytest.mark.timeout(120)

CONTEXT = HookContext(Scope(), SessionRef("s", "s"), "ab" * 16, Position(0, "1-1", 1), 1, 10.0)
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "webhook.md"


def opened(tmp_path, receiver, **options):
    """Return an open instance that sends to a receiver."""
    given = receiver.options(tmp_path) | options
    provider = WebhookProvider(ProviderConfig(name="hook", home=tmp_path, options=given))
    provider.open()
    return provider


def hooked(make_world, options):
    return make_world(
        providers=("webhook",), provider={"webhook": {"kind": "webhook", **options}}, **PATIENT
    )


def test_events_come_in_order_signed_and_once(make_world, tmp_path):
    """G3, G4: each session's events come in order; a worker that is replaced sends none again."""
    with webhook_receiver() as receiver:
        world = hooked(make_world, receiver.options(tmp_path))
        first = world.worker(jobs=0)
        with world.bus() as bus:
            talks = [bus.session(f"s{number}", warm=False) for number in range(4)]
            for turn in range(10):
                for talk in talks:
                    talk.turn_completed(f"turn {turn}", "ok", ordinal=turn)
            assert bus.flush("logged", 10)
        world.wait_applied()
        first.terminate()
        world.worker(jobs=0)
        with world.bus() as bus:
            bus.session("s0", warm=False).ended("over")
            assert bus.flush("logged", 10)
        world.wait_applied()
    assert receiver.forged == 0
    assert len(receiver.requests) == len(receiver.kept) == 4 * 11 + 1
    for name in ("s0", "s3"):
        own = [event for event in receiver.requests if event["session"]["id"] == name]
        turns = [each["event"]["user"] for each in own if each["type"] == "TurnCompleted"]
        assert turns == [f"turn {turn}" for turn in range(10)]
        assert [each["n"] for each in own] == sorted(each["n"] for each in own)


def test_a_refused_event_is_a_dead_letter(make_world, tmp_path):
    """G6: 422 parks the event and its session's later ones; retried they come in their order."""
    with webhook_receiver() as receiver:
        receiver.answers["poison"] = 422
        world = hooked(make_world, receiver.options(tmp_path))
        world.worker(jobs=0)
        with world.bus() as bus:
            talk = bus.session("s", warm=False)
            for words in ("first", "poison", "last"):
                talk.turn_completed(words, "ok")
            bus.session("other", warm=False).turn_completed("another", "ok")
            assert bus.flush("logged", 10)
        world.wait_applied()
        kept = [event["event"].get("user") for event in receiver.kept.values()]
        assert "another" in kept
        assert "last" not in kept
        del receiver.answers["poison"]
        retry = ("dlq", "retry", "--provider", "webhook", "--all", "--wait", "30")
        assert world.run(*retry).returncode == 0
        wait_until(lambda: len(receiver.kept) == 6, "all events are taken", 30)
    turns = [each["event"].get("user") for each in receiver.kept.values()]
    assert [words for words in turns if words in ("poison", "last")] == ["poison", "last"]


def test_redirects_are_not_followed(tmp_path):
    """The key's signature is sent to no other address than the operator's."""
    with webhook_receiver() as receiver, webhook_receiver() as other:
        receiver.answers[""], receiver.location = 307, other.url
        with pytest.raises(Unavailable, match="the webhook answers 307"):
            opened(tmp_path, receiver).sync_turn(TurnCompleted(user="x"), CONTEXT)
    assert (other.requests, other.forged) == ([], 0)


def test_a_private_address_is_refused_before_anything_is_sent(tmp_path):
    """Without `allow_private` an address of this host, by number or by name, gets no connection."""
    with socket.create_server(("127.0.0.1", 0)) as server, webhook_receiver() as receiver:
        port = server.getsockname()[1]
        server.settimeout(0)
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"):
            options = {"base_url": f"http://{host}:{port}/", "allow_private": False}
            provider = opened(tmp_path, receiver, **options)
            with pytest.raises(Unavailable, match="allow_private = true"):
                provider.sync_turn(TurnCompleted(user="x"), CONTEXT)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_name_that_moves_to_a_private_address_is_refused(tmp_path, monkeypatch):
    """The address of the connection itself counts, not only that of an earlier look-up."""
    monkeypatch.setattr(public_addresses, "_addresses", lambda *_: [])
    with webhook_receiver() as receiver:
        provider = opened(tmp_path, receiver, allow_private=False)
        with pytest.raises(Unavailable, match="nothing was sent"):
            provider.sync_turn(TurnCompleted(user="x"), CONTEXT)
    assert (receiver.requests, receiver.forged) == ([], 0)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *((each, True) for each in ("93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8")),
        *((each, False) for each in ("10.0.0.1", "127.0.0.1", "169.254.169.254", "100.64.0.1")),
        *((each, False) for each in ("0.0.0.0", "224.0.0.1", "::1", "fe80::1%eth0", "fd00::1")),
        *((each, False) for each in ("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::")),
    ],
)
def test_which_addresses_are_public(address, public):
    """Neither a private network, nor one that an IPv6 address stands for, is public."""
    assert is_public(address) == public


def test_the_signature_is_that_of_standard_webhooks():
    """The example of the standard's own libraries has the signature that they document."""
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    made = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    with pytest.raises(ConfigError, match="base64"):
        signing_key("whsec_!")


def test_without_a_key_nothing_is_sent(tmp_path):
    """A webhook that cannot sign is refused when its settings are read."""
    options = {"base_url": "https://example.org"}
    with pytest.raises(ConfigError, match="signed with that key"):
        WebhookProvider(ProviderConfig(name="hook", home=tmp_path, options=options))


def test_the_pages_receiver_runs(tmp_path):
    """The receiver on the page takes a genuine event, and refuses one with another key."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = os.environ | {"HOOK_KEY": KEY, "PORT": str(port)}
    command = [sys.executable, "-c", code]
    with (
        webhook_receiver() as unused,
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as receiver,
    ):
        try:
            provider = opened(tmp_path, unused, base_url=f"http://127.0.0.1:{port}/")
            wait_until(lambda: _sent(provider), "the receiver takes the event")
            assert receiver.stdout is not None
            assert json.loads(receiver.stdout.readline())["event"]["user"] == "hello"
            (tmp_path / "hook.key").write_text("another")
            provider.shutdown()
            provider.open()  # reads the other key
            with pytest.raises(Unavailable, match="answers 401"):
                provider.sync_turn(TurnCompleted(user="forged"), CONTEXT)
        finally:
            receiver.kill()


def _sent(provider):
    try:
        provider.sync_turn(TurnCompleted(user="hello"), CONTEXT)
    except Unavailable:  # it does not listen yet
        return False
    return True
