"""Asks a model behind any endpoint that is compatible with OpenAI's, for an answer of a given type.

The answer must fit a JSON schema that is derived from a msgspec type. What does not fit is repaired
once by the model, or else refused. Every call passes a gate, which keeps the budgets and holds
calls back while the service is down.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import msgspec
from memorybus.clock import Clock
from memorybus.errors import (
    MissingProvider,
    Permanent,
    ProviderError,
    Transient,
    Unavailable,
    install_command,
)
from memorybus.msgspec_types import prepared

if TYPE_CHECKING:
    from openai import OpenAI

T = TypeVar("T")

_MOST_BYTES = 1 << 20
"""The most bytes of an answer that are read (G10)."""

_MOST_REPEATED = 4_000
"""The most characters of an unreadable answer that the model is shown again."""

_MOST_TOKENS = 1_000_000_000
"""The most tokens of a question, and of an answer, that a service may count: Redis adds them up."""

_MAX_NAME = 100
"""The most characters of a model's name as the service states it."""

_MESSAGE_TOKENS = 16
"""Tokens around the texts of a message, at most."""


class BudgetSpent(Unavailable):
    """A limit of calls or tokens is reached; the next hour or month allows calls again."""


class UnreadableAnswer(Permanent):
    """The model's answer, and its repair, did not fit the schema."""


class ModelEndpoint(msgspec.Struct, frozen=True):
    """Where the model is; `memorybus.config.model_settings` describes the fields."""

    base_url: str
    name: str
    timeout: float = 60.0
    answer_tokens: int = 2_000
    answer_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    prices: Mapping[str, tuple[float, float]] = {}

    def cost(self, model: str, tokens_in: int, tokens_out: int) -> float:
        """Return what a call cost; 0 for a model without a price."""
        price_in, price_out = self.prices.get(model) or self.prices.get(self.name) or (0.0, 0.0)
        return (tokens_in * price_in + tokens_out * price_out) / 1_000_000


R = TypeVar("R")


class CallGate(Protocol[R]):
    """Lets calls through while the budget lasts and the service answers."""

    def reserve(self, person: str, tokens: int) -> R:
        """Count a call, and the most tokens that it may use.

        Raises:
            BudgetSpent: a limit is reached.
            Unavailable: calls are held back, or the budget cannot be read.
        """
        ...

    def settle(self, reservation: R, used: int | None, failure: ProviderError | None) -> None:
        """Note how a call ended, and how many tokens it used; None if that is not known."""
        ...

    def note_unreadable(self, person: str) -> None:
        """Count an answer that was left since it did not fit the schema."""
        ...


class ModelAnswer(msgspec.Struct, Generic[T], frozen=True):
    """What the model answered, and what that used: the sum over the answer and its repair."""

    value: T
    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message


class _Completion(msgspec.Struct, frozen=True):
    """A service's answer, as far as it is needed."""

    choices: list[_Choice]
    model: str = ""
    usage: _Usage | None = None

    @property
    def text(self) -> str:
        return (self.choices[0].message.content or "") if self.choices else ""

    @property
    def used(self) -> tuple[int, int]:
        """The tokens of question and answer, none below 0 or above a bound (G10)."""
        usage = self.usage or _Usage()
        used = (usage.prompt_tokens, usage.completion_tokens)
        prompt, completion = (min(max(0, tokens), _MOST_TOKENS) for tokens in used)
        return prompt, completion


class ChatModel(Generic[R]):
    """A model. Belongs to one thread; no call takes much longer than twice its time-out.

    Args:
        endpoint: where it is.
        key: the service's key; "" for none. It is masked in errors.
        gate: keeps the budgets.
        clock: bounds each call.
    """

    def __init__(self, endpoint: ModelEndpoint, key: str, gate: CallGate[R], clock: Clock) -> None:
        self.name = endpoint.name
        self._endpoint, self._key, self._gate, self._clock = endpoint, key, gate, clock

    def ask(self, kind: type[T], task: str, data: str, person: str) -> ModelAnswer[T]:
        """Return the model's answer as a `kind`.

        Args:
            kind: a struct. Services accept one that forbids unknown fields, has no field with a
                default, and no bounds in its annotations.
            task: what the model has to do: the only text that is an instruction.
            data: what it has to do that with. The caller fences it.
            person: whose budget is used.

        Raises:
            UnreadableAnswer: neither the answer nor its repair fits.
            Unavailable: the service is down, or held back; `BudgetSpent` if a limit is reached.
            Transient: the service failed twice; another try may succeed.
            Permanent: the service refuses this question, for example because it is too long.
        """
        messages = [{"role": "system", "content": task}, {"role": "user", "content": data}]
        completions: list[_Completion] = []
        for _ in range(2):
            completions.append(self._complete(messages, schema_of(kind), person))
            try:
                value = msgspec.json.decode(_json_in(completions[-1].text), type=prepared(kind))
            except (msgspec.MsgspecError, UnicodeError) as error:
                messages = [*messages, *_repair(completions[-1].text, str(error), schema_of(kind))]
            else:
                return self._answer(value, completions)
        self._gate.note_unreadable(person)
        raise UnreadableAnswer(f"{self.name}: its answer, and its repair, do not fit the schema")

    def close(self) -> None:
        """Close the connections."""
        if "_client" in vars(self):
            self._client.close()

    def _answer(self, value: T, completions: Sequence[_Completion]) -> ModelAnswer[T]:
        tokens_in = sum(completion.used[0] for completion in completions)
        tokens_out = sum(completion.used[1] for completion in completions)
        model = completions[-1].model[:_MAX_NAME] or self.name
        cost = self._endpoint.cost(model, tokens_in, tokens_out)
        return ModelAnswer(value, model, tokens_in, tokens_out, cost)

    def _complete(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], person: str
    ) -> _Completion:
        """Ask once, and once more if only this call failed."""
        try:
            return self._try(messages, schema, person)
        except Unavailable:
            raise
        except Transient:
            return self._try(messages, schema, person)

    def _try(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], person: str
    ) -> _Completion:
        client = self._client  # a missing library costs nothing
        tokens = _most_tokens(messages, schema) + self._endpoint.answer_tokens
        reservation = self._gate.reserve(person, tokens)
        try:
            completion = self._send(client, messages, schema)
        except ProviderError as error:
            # After a time-out the service may have used what was reserved.
            used = 0 if isinstance(error, Unavailable | Permanent) else None
            self._gate.settle(reservation, used, error)
            raise
        used = sum(completion.used) if completion.usage else None
        self._gate.settle(reservation, used, None)
        return completion

    def _send(
        self, client: "OpenAI", messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]
    ) -> _Completion:
        body = {
            "model": self.name,
            "messages": messages,
            self._endpoint.answer_limit: self._endpoint.answer_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            },
        }
        with self._failures():
            content = self._read(client, body)
        try:
            return msgspec.json.decode(content, type=prepared(_Completion))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Transient(f"{self.name}: the service's answer is no completion") from error

    def _read(self, client: "OpenAI", body: dict[str, Any]) -> bytes:
        until = self._clock.monotonic() + self._endpoint.timeout
        content = bytearray()
        create = client.chat.completions.with_streaming_response.create
        with create(**body) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > _MOST_BYTES or self._clock.monotonic() > until:
                    raise Transient(f"{self.name}: the service's answer is too long or too slow")
        return bytes(content)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        import httpx2  # the HTTP library of `openai`
        from openai import APIStatusError, OpenAIError

        from memorybus_providers.remote.http import error_for_connection, error_for_status, quote

        try:
            yield
        except APIStatusError as error:
            status = error.status_code
            detail = quote(error.message, self._key)
            message = f"{self.name}: the service answers {status}: {detail}"
            raise error_for_status(status, message) from None
        except (OpenAIError, httpx2.HTTPError) as error:
            message = f"{self.name}: {quote(str(error), self._key)}"
            raise error_for_connection(error, message) from None

    @cached_property
    def _client(self) -> "OpenAI":
        try:
            import urllib3  # noqa: F401  the errors of services need it
            from openai import DefaultHttpxClient, OpenAI
        except ImportError as error:
            raise MissingProvider(
                f"the setting `model` needs a library that is missing ({error.name}). "
                f"Install it with: {install_command('derive')}"
            ) from error
        # No redirect is followed, so that the key is sent only to the configured address.
        return OpenAI(
            api_key=self._key or "none",
            base_url=self._endpoint.base_url,
            timeout=self._endpoint.timeout,
            max_retries=0,
            http_client=DefaultHttpxClient(follow_redirects=False),
        )


def schema_of(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a struct, with the struct itself at the root, as services want."""
    (reference,), components = msgspec.json.schema_components(
        (prepared(kind),), ref_template="#/$defs/{name}"
    )
    root = components.pop(reference["$ref"].rpartition("/")[2])
    return {**root, "$defs": components} if components else root


def _most_tokens(messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]) -> int:
    """Return the most tokens of a question: no tokenizer makes more of a text than its bytes."""
    texts = sum(len(message["content"].encode()) + _MESSAGE_TOKENS for message in messages)
    return texts + len(msgspec.json.encode(schema))


def _json_in(text: str) -> str:
    """Return the JSON object in an answer: some models put words or marks around it."""
    return text[text.find("{") : text.rfind("}") + 1]


def _repair(answer: str, error: str, schema: Mapping[str, Any]) -> list[dict[str, str]]:
    wanted = msgspec.json.encode(schema).decode()
    demand = (
        f"This does not fit ({error[:200]}). Answer with one JSON object of this schema, and "
        f"nothing else: {wanted}"
    )
    return [
        {"role": "assistant", "content": answer[:_MOST_REPEATED]},
        {"role": "user", "content": demand},
    ]
