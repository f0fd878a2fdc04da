"""Who may look, and who may act: people with the token, or people whom a trusted proxy names.

People have to be identified before they may look or act: by a token, or by a proxy. If the settings
name neither, `memorybus serve` makes a token of its own, and strangers on this machine see counts.
"""

import hmac
import threading
from collections import OrderedDict, deque
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from memorybus import private
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.ids import NewSecret, sha256
from starlette.requests import Request

_T = TypeVar("_T")

SESSION_SECONDS: Final = 12 * 3_600.0  # seconds after which somebody has to sign in again

_MAX_SESSIONS = 1_000  # the most sessions at once; if there are more the oldest one is signed out

_MAX_TRIES, _TRY_SECONDS = 5, 60.0
"""The most wrong tokens from one address that are checked, and in how many seconds."""

_NAME_LENGTH = 100  # the most characters of a person's name


class Operator(msgspec.Struct, frozen=True):
    """A person who may act."""

    name: str
    proof: str  # a secret in our own forms, which a form of another site cannot contain
    session: str = ""  # the session of this browser; "" if a proxy names the person


class TooManyTries(Exception):
    """There were too many wrong tokens: none is checked for a minute."""


class Access:
    """Knows who is signed in; any thread may call it.

    Args:
        settings: the token's hash, the proxy's header and addresses.
        own_token: the hash of the token that the page made itself; "" if the settings name one.
    """

    def __init__(
        self, settings: Settings, clock: Clock, make_secret: NewSecret, own_token: str = ""
    ) -> None:
        self._settings = settings
        self._token = settings.page_token or own_token
        self._clock = clock
        self._make_secret = make_secret
        self._key = make_secret().encode()
        self._lock = threading.Lock()
        self._signed_in: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._bearers: OrderedDict[str, None] = OrderedDict()
        self._messages: OrderedDict[str, str] = OrderedDict()
        _check_hash(settings.page_token)

    @property
    def uses_token(self) -> bool:
        return bool(self._token)

    @property
    def is_guarded(self) -> bool:
        """Whether the settings say how people are identified, so that strangers see nothing."""
        return bool(self._settings.page_token or self._settings.page_proxy_header)

    def person(self, request: Request) -> Operator | None:
        """Return the person who sends a request; None if that is unknown."""
        return (
            self._named_by_proxy(request)
            or self._signed_in_person(request)
            or self._bearer_person(request)
        )

    def is_secure(self, request: Request) -> bool:
        """Return whether the browser uses https, to us or to a trusted proxy."""
        scheme = request.headers.get("x-forwarded-proto", "") if self._trusts(request) else ""
        return (scheme or request.url.scheme) == "https"

    def cookie_name(self, request: Request) -> str:
        return "__Host-memorybus" if self.is_secure(request) else "memorybus"

    def sign_in(self, token: str, name: str, address: str) -> str | None:
        """Return a new session if the token is right, else None."""
        if not self._is_right(token, address):
            return None
        session = self._make_secret()
        with self._lock:
            self._signed_in[session] = (
                name[:_NAME_LENGTH],
                self._clock.monotonic() + SESSION_SECONDS,
            )
            _drop_oldest(self._signed_in, _MAX_SESSIONS)
        return session

    def sign_out(self, person: Operator) -> None:
        with self._lock:
            self._signed_in.pop(person.session, None)

    def keep_message(self, person: Operator, text: str) -> None:
        with self._lock:
            self._messages[person.proof] = text
            _drop_oldest(self._messages, _MAX_SESSIONS)

    def take_message(self, person: Operator | None) -> str:
        """Return the message that was kept for a person, and forget it; "" if there is none."""
        with self._lock:
            return self._messages.pop(person.proof, "") if person else ""

    def is_own_form(self, request: Request, person: Operator, proof: str) -> bool:
        """Return whether a POST came from one of our forms, made for this person."""
        return is_own_origin(request) and hmac.compare_digest(person.proof, proof)

    def _trusts(self, request: Request) -> bool:
        peer = request.client.host if request.client else ""
        return bool(self._settings.page_proxy_header) and peer in self._settings.page_proxies

    def _named_by_proxy(self, request: Request) -> Operator | None:
        header = self._settings.page_proxy_header
        name = request.headers.get(header, "")[:_NAME_LENGTH] if self._trusts(request) else ""
        return Operator(name, self._proof(f"proxy:{name}")) if name else None

    def _signed_in_person(self, request: Request) -> Operator | None:
        session = request.cookies.get(self.cookie_name(request), "")
        with self._lock:
            name, until = self._signed_in.get(session, ("", 0.0))
        if self._clock.monotonic() >= until:
            return None
        return Operator(name, self._proof(session), session)

    def _bearer_person(self, request: Request) -> Operator | None:
        """Return the person "bearer" for a program that sends the token, as Prometheus does."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token or not self.uses_token:
            return None
        address = request.client.host if request.client else ""
        try:
            right = self._is_right(token, address)
        except TooManyTries:
            return None
        return Operator("bearer", self._proof(token)) if right else None

    def _proof(self, credential: str) -> str:
        return hmac.new(
            self._key, credential.encode("utf-8", "surrogatepass"), "sha256"
        ).hexdigest()

    def _is_right(self, token: str, address: str) -> bool:
        """Compare a token with the hash; this is slow on purpose: right tokens are remembered."""
        digest = sha256(self._key + token.encode("utf-8", "surrogatepass"))
        with self._lock:
            if digest in self._bearers:
                return True
            self._check_tries(address)
            right = self.uses_token and _matches_hash(self._token, token)
            if right:
                self._bearers[digest] = None
                _drop_oldest(self._bearers, _MAX_SESSIONS)
            else:
                self._wrong.setdefault(address, deque()).append(self._clock.monotonic())
                _drop_oldest(self._wrong, _MAX_SESSIONS)
        return right

    def _check_tries(self, address: str) -> None:
        wrong = self._wrong.get(address, deque())
        while wrong and wrong[0] < self._clock.monotonic() - _TRY_SECONDS:
            wrong.popleft()
        if len(wrong) >= _MAX_TRIES:
            raise TooManyTries


def is_own_origin(request: Request) -> bool:
    """Return whether the Origin header, if a browser sends one, names this host."""
    origin = request.headers.get("origin")
    if origin is None:
        return True
    return origin.partition("://")[2] == request.headers.get("host", "")


class OwnToken(msgspec.Struct, frozen=True):
    """The token that the page made itself."""

    token: str
    path: Path  # the file that keeps it, for its user alone
    is_new: bool  # whether it was made just now


def own_token(path: Path, make_secret: NewSecret) -> OwnToken:
    """Return the page's own token; make it, and its private file, at the first call."""
    try:
        private.directory(path.parent)
        if path.exists() and (kept := path.read_text("utf-8").strip()):
            return OwnToken(kept, path, is_new=False)
        made = make_secret()
        private.write(path, f"{made}\n".encode())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: the page's token cannot be kept: {error}; repair the file, or set page_token "
            f"(memorybus config page-token makes one)"
        ) from error
    return OwnToken(made, path, is_new=True)


def hash_token(token: str) -> str:
    """Return the hash of a token, for the setting `page_token`."""
    return PasswordHasher().hash(token)


def _matches_hash(hashed: str, token: str) -> bool:
    try:
        return PasswordHasher().verify(hashed, token)
    except VerificationError:
        return False


def _check_hash(hashed: str) -> None:
    try:
        if hashed:
            PasswordHasher().check_needs_rehash(hashed)
    except InvalidHashError as error:
        raise ConfigError(
            "page_token is not an argon2 hash; make one with: memorybus config page-token"
        ) from error


def _drop_oldest(items: "OrderedDict[str, _T]", most: int) -> None:
    while len(items) > most:
        items.popitem(last=False)
