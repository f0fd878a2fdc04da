"""Who may look, and who may act: a token, or a person whom a trusted proxy names.

Without either, whoever reaches the page may look and nobody may act. With one of them nobody does
anything before it is known who it is.
"""

import hmac
import threading
from collections import OrderedDict, deque
from typing import Final, TypeVar

import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from starlette.requests import Request

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.ids import NewSecret, sha256

_T = TypeVar("_T")

LASTS: Final = 12 * 3_600.0
"""Seconds after which somebody has to sign in again."""

_MOST = 1_000
"""People who are signed in at once; the first of more is signed out."""

_TRIES, _WITHIN = 5, 60.0
"""So many wrong tokens from one address, within so many seconds, are looked at."""

_NAME = 100
"""Characters of a name that are kept."""


class Person(msgspec.Struct, frozen=True):
    """Somebody who may act.

    Attributes:
        name: as the log is told.
        proof: what a form of ours holds and one of a stranger cannot.
        session: of this browser; "" if a proxy names the person.
    """

    name: str
    proof: str
    session: str = ""


class TooManyTries(Exception):
    """Tokens are not looked at for a minute."""


class Access:
    """Knows who is signed in; any thread may ask.

    Args:
        settings: the token's hash, the proxy's header and addresses.
        clock: time.
        make_secret: makes what names a session.

    Raises:
        ConfigError: the hash is none of argon2.
    """

    def __init__(self, settings: Settings, clock: Clock, make_secret: NewSecret) -> None:
        """Know nobody yet."""
        self._settings = settings
        self._clock = clock
        self._make_secret = make_secret
        self._key = make_secret().encode()
        self._lock = threading.Lock()
        self._signed_in: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._bearers: OrderedDict[str, None] = OrderedDict()
        self._said: OrderedDict[str, str] = OrderedDict()
        _check_hash(settings.page_token)

    @property
    def by_token(self) -> bool:
        """Whether people sign in with a token."""
        return bool(self._settings.page_token)

    @property
    def is_guarded(self) -> bool:
        """Whether it has to be known who somebody is."""
        return self.by_token or bool(self._settings.page_proxy_header)

    def person(self, request: Request) -> Person | None:
        """Return who asks; None if nobody knows."""
        return self._named_by_proxy(request) or self._signed(request) or self._bearer(request)

    def is_secure(self, request: Request) -> bool:
        """Say whether the browser speaks https, to us or to a trusted proxy."""
        told = request.headers.get("x-forwarded-proto", "") if self._trusts(request) else ""
        return (told or request.url.scheme) == "https"

    def cookie(self, request: Request) -> str:
        """Return the name of the cookie that names a session."""
        return "__Host-memorybus" if self.is_secure(request) else "memorybus"

    def sign_in(self, token: str, name: str, address: str) -> str | None:
        """Return a new session if the token is right, else None.

        Args:
            token: as it was typed.
            name: who it is, as the log will be told.
            address: from where.

        Raises:
            TooManyTries: it was wrong too often from there.
        """
        if not self._is_right(token, address):
            return None
        session = self._make_secret()
        with self._lock:
            self._signed_in[session] = (name[:_NAME], self._clock.monotonic() + LASTS)
            _bound(self._signed_in, _MOST)
        return session

    def sign_out(self, person: Person) -> None:
        """Forget a session."""
        with self._lock:
            self._signed_in.pop(person.session, None)

    def say(self, person: Person, text: str) -> None:
        """Keep what to tell somebody on the next page."""
        with self._lock:
            self._said[person.proof] = text
            _bound(self._said, _MOST)

    def said(self, person: Person | None) -> str:
        """Return what to tell somebody now, and forget it."""
        with self._lock:
            return self._said.pop(person.proof, "") if person else ""

    def is_own_form(self, request: Request, person: Person, proof: str) -> bool:
        """Say whether a POST came from a form of ours that was made for this person."""
        return is_own_origin(request) and hmac.compare_digest(person.proof, proof)

    def _trusts(self, request: Request) -> bool:
        peer = request.client.host if request.client else ""
        return bool(self._settings.page_proxy_header) and peer in self._settings.page_proxies

    def _named_by_proxy(self, request: Request) -> Person | None:
        header = self._settings.page_proxy_header
        name = request.headers.get(header, "")[:_NAME] if self._trusts(request) else ""
        return Person(name, self._proof(f"proxy:{name}")) if name else None

    def _signed(self, request: Request) -> Person | None:
        session = request.cookies.get(self.cookie(request), "")
        with self._lock:
            name, until = self._signed_in.get(session, ("", 0.0))
        if self._clock.monotonic() >= until:
            return None
        return Person(name, self._proof(session), session)

    def _bearer(self, request: Request) -> Person | None:
        """Return a program that shows the token with each request, as Prometheus does."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token or not self.by_token:
            return None
        address = request.client.host if request.client else ""
        try:
            right = self._is_right(token, address)
        except TooManyTries:
            return None
        return Person("bearer", self._proof(token)) if right else None

    def _proof(self, whose: str) -> str:
        return hmac.new(self._key, whose.encode("utf-8", "surrogatepass"), "sha256").hexdigest()

    def _is_right(self, token: str, address: str) -> bool:
        """Compare a token with the hash: slow by intent, so a right one is remembered."""
        known = sha256(self._key + token.encode("utf-8", "surrogatepass"))
        with self._lock:
            if known in self._bearers:
                return True
            self._check_tries(address)
            right = self.by_token and _fits(self._settings.page_token, token)
            if right:
                self._bearers[known] = None
                _bound(self._bearers, _MOST)
            else:
                self._wrong.setdefault(address, deque()).append(self._clock.monotonic())
                _bound(self._wrong, _MOST)
        return right

    def _check_tries(self, address: str) -> None:
        wrong = self._wrong.get(address, deque())
        while wrong and wrong[0] < self._clock.monotonic() - _WITHIN:
            wrong.popleft()
        if len(wrong) >= _TRIES:
            raise TooManyTries


def is_own_origin(request: Request) -> bool:
    """Say whether a browser that tells where a request comes from tells this very place."""
    origin = request.headers.get("origin")
    if origin is None:
        return True
    return origin.partition("://")[2] == request.headers.get("host", "")


def hashed(token: str) -> str:
    """Return the hash of a token, as the setting `page_token` wants it."""
    return PasswordHasher().hash(token)


def _fits(found: str, token: str) -> bool:
    try:
        return PasswordHasher().verify(found, token)
    except VerificationError:
        return False


def _check_hash(found: str) -> None:
    try:
        if found:
            PasswordHasher().check_needs_rehash(found)
    except InvalidHashError as error:
        raise ConfigError(
            "page_token is no hash of argon2; make one with: memorybus config page-token"
        ) from error


def _bound(known: "OrderedDict[str, _T]", most: int) -> None:
    while len(known) > most:
        known.popitem(last=False)
