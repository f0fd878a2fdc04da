"""Adds the bus's errors, deadlines and pauses to Hindsight's client.

The methods of hindsight-client 1.1.0 are coroutines, which run on an event loop in a separate
thread. The client never repeats a write, and with ``max_attempts`` 1 it never repeats a read: the
bus decides what is tried again.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import aiohttp
from hindsight_client import Hindsight
from hindsight_client_api.exceptions import ApiException
from hindsight_client_api.models.bank_list_item import BankListItem
from hindsight_client_api.models.features_info import FeaturesInfo
from hindsight_client_api.models.recall_result import RecallResult
from memorybus.clock import Clock
from memorybus.errors import ProviderError, Transient

from memorybus_providers.hindsight.documents import Document, StoredDocument
from memorybus_providers.hindsight.options import HindsightOptions
from memorybus_providers.remote import http
from memorybus_providers.remote.loop import PrivateLoop

_T = TypeVar("_T")

_DEADLINE_SHARE = 0.9
"""The part of a hook's deadline that its requests may take together; the rest is for our code."""

_PAGE = 100

_NOT_FOUND = re.compile(r"(?:Bank|Document) .*not found|Document not found")
"""Hindsight's words for a missing bank or document; for a wrong address it uses others."""


class HindsightService:
    """A server of Hindsight. May be used from several threads."""

    def __init__(self, name: str, options: HindsightOptions, key: str, clock: Clock) -> None:
        self._loop = PrivateLoop(name)
        self._key, self._clock = key, clock
        self._rate_limit = http.RateLimit(clock)
        self._client = Hindsight(
            options.base_url, api_key=key or None, user_agent="memorybus", max_attempts=1
        )

    def close(self) -> None:
        """Close the connections."""
        with suppress(TimeoutError, OSError):
            closing: Coroutine[Any, Any, None] = self._client.aclose()  # type: ignore[no-untyped-call]
            self._loop.wait_for(closing, 2.0)
        self._loop.close()

    def within(self, deadline: float) -> "Calls":
        """Return the calls of one hook, which share its deadline in seconds."""
        return Calls(self, self._clock.monotonic() + _DEADLINE_SHARE * deadline)

    def request(self, call: Callable[[Hindsight], Awaitable[_T]], until: float) -> _T:
        """Make a request and return the answer, which must come before `until` (monotonic time).

        Raises:
            Unavailable, Transient, Permanent: see `remote.http`.
        """
        self._rate_limit.check("Hindsight")
        left = until - self._clock.monotonic()
        if left <= 0:
            raise Transient("Hindsight: no time is left before the deadline")
        try:
            return self._loop.wait_for(call(self._client), left)
        except ApiException as error:
            raise self._refusal(error) from error
        except TimeoutError as error:
            raise Transient(f"Hindsight did not answer within {left:.1f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            reason = http.quote(str(error), self._key)
            raise http.error_for_connection(error, f"Hindsight: {reason}") from error
        except http.UNREADABLE as error:
            raise http.error_for_unreadable(error, "Hindsight") from error

    def _refusal(self, error: ApiException) -> ProviderError:
        status = int(error.status or 0)
        reason = http.quote(http.error_detail(error.body or ""), self._key)
        if status == 404 and _NOT_FOUND.search(reason):
            return _NotFound(reason)
        pause = http.retry_after_seconds(
            (error.headers or {}).get("Retry-After"), self._clock.now_ms()
        )
        if status == 429 or (status == 503 and pause is not None):
            self._rate_limit.note_pause(pause)
        return http.error_for_status(status, f"Hindsight answers {status}: {reason}")


class Calls:
    """Requests that share a deadline; each raises what `HindsightService.request` raises."""

    def __init__(self, service: HindsightService, until: float) -> None:
        self._service, self._until = service, until

    def retain(self, bank: str, documents: Sequence[Document], operation: str = "") -> None:
        """Store documents; each replaces a document of the same name.

        Args:
            bank: the bank; it is made if it is missing.
            documents: documents with different names.
            operation: the id under which Hindsight queues them; "" to store them now.
        """
        items = [_item(document) for document in documents]
        self._request(
            lambda client: client.aretain_batch(
                bank, items, retain_async=bool(operation), operation_id=operation or None
            )
        )

    def recall(
        self, bank: str, query: str, tags: Sequence[str], budget: str, tokens: int
    ) -> list[RecallResult]:
        """Return memories that have all of the tags, best first; none if the bank is missing."""
        answer = self._find(
            lambda client: client.arecall(
                bank,
                query,
                budget=budget,
                max_tokens=tokens,
                tags=list(tags),
                tags_match="all_strict",
            )
        )
        return list(answer.results) if answer else []

    def reflect(self, bank: str, query: str, tags: Sequence[str], budget: str, tokens: int) -> str:
        """Return an answer that Hindsight's model makes from memories with all of the tags."""
        answer = self._find(
            lambda client: client.areflect(
                bank,
                query,
                budget=budget,
                max_tokens=tokens,
                tags=list(tags),
                tags_match="all_strict",
            )
        )
        return answer.text if answer else ""

    def get_document(self, bank: str, name: str) -> StoredDocument | None:
        """Return the document of this name; None if it is missing."""
        response = self._find(lambda client: client.documents.get_document(bank, name))
        if response is None:
            return None
        metadata = {str(k): str(v) for k, v in (response.document_metadata or {}).items()}
        return StoredDocument(
            response.id, response.original_text or "", metadata, tuple(response.tags or ())
        )

    def document_names(self, bank: str, tags: Sequence[str], containing: str = "") -> Iterator[str]:
        """Yield names of documents with all of the tags and with `containing` in name or text."""
        offset = 0
        while page := self._page(bank, tags, containing, offset):
            yield from page
            offset += len(page)

    def delete_document(self, bank: str, name: str) -> None:
        """Delete a document and what was derived from it; it is no error if it is missing."""
        self._find(lambda client: client.documents.delete_document(bank, name))

    def _page(self, bank: str, tags: Sequence[str], containing: str, offset: int) -> list[str]:
        page = self._find(
            lambda client: client.documents.list_documents(
                bank,
                q=containing or None,
                tags=list(tags),
                tags_match="all_strict",
                time_field="created_at",
                limit=_PAGE,
                offset=offset,
            )
        )
        return [document.id for document in page.items] if page else []

    def delete_bank(self, bank: str) -> int:
        """Delete a bank with its whole content; return how many rows were deleted."""
        return int(self._request(lambda client: client.banks.delete_bank(bank)).deleted_count or 0)

    def bank_names(self, prefix: str) -> list[str]:
        """Return all names of banks that begin with a prefix, the one last written first."""
        banks: list[BankListItem] = []
        while page := self._banks(prefix, len(banks)):
            banks += page
        ours = [bank for bank in banks if bank.bank_id.startswith(prefix)]
        ours.sort(key=lambda bank: bank.last_write_at or "", reverse=True)
        return [bank.bank_id for bank in ours]

    def queued_documents(self, bank: str) -> set[str]:
        """Return the names of the documents in Hindsight's queue, the newest 100 of each state."""
        states = [self._operations(bank, state) for state in ("pending", "processing")]
        return {one.document_id for state in states for one in state if one.document_id}

    def features(self) -> FeaturesInfo:
        """Return which features the server has enabled."""
        return self._request(lambda client: client.aget_version()).features

    def _banks(self, prefix: str, offset: int) -> list[BankListItem]:
        page = self._request(
            lambda client: client.banks.list_banks(q=prefix, limit=_PAGE, offset=offset)
        )
        return list(page.banks)

    def _operations(self, bank: str, state: str) -> list[Any]:
        listed = self._find(
            lambda client: client.operations.list_operations(bank, status=state, limit=_PAGE)
        )
        return list(listed.operations) if listed else []

    def _find(self, call: Callable[[Hindsight], Awaitable[_T]]) -> _T | None:
        """Make a request; None if its bank or document is missing."""
        with suppress(_NotFound):
            return self._request(call)
        return None

    def _request(self, call: Callable[[Hindsight], Awaitable[_T]]) -> _T:
        return self._service.request(call, self._until)


class _NotFound(ProviderError):
    """The bank or the document is missing."""


def _item(document: Document) -> dict[str, Any]:
    return {
        "content": document.content,
        "timestamp": datetime.fromtimestamp(document.at / 1_000, UTC).isoformat(),
        "context": document.context,
        "metadata": document.metadata,
        "document_id": document.id,
        "tags": list(document.tags),
        "update_mode": "replace",
    }
