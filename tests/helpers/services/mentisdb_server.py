"""A fake MentisDB server on loopback: the REST routes of 0.9 that the provider calls, by its docs.

As the server does, it makes a chain for any request that names one, takes what is appended as often
as it is sent, and deletes nothing. Its ranked search counts shared words; that of a branch looks at
the chain that it branches from, too.
"""

import itertools
import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from helpers.services.fake_http import serving
from helpers.services.faulty_http import FaultyHandler, FaultyServer, Refused

Thought = dict[str, Any]

_BORN = "2026-01-01T00:00:00.000000000Z"


class MentisDbServer(FaultyServer):
    """What it holds.

    Attributes:
        chains: the thoughts of each chain, in order.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.chains: dict[str, list[Thought]] = {}
        self.numbers = itertools.count()

    def texts(self) -> list[str]:
        """Return all texts that it holds."""
        return [one["content"] for held in self.chains.values() for one in held]

    def contents(self, chain: str) -> list[str]:
        """Return what the thoughts of a chain say that are no marks."""
        held = self.chains.get(chain, [])
        return [one["content"] for one in held if "mb:mark" not in one["tags"]]


class _Handler(FaultyHandler):
    server: MentisDbServer

    def answer(self, method: str, body: Any) -> Any:
        if self.path not in _ROUTES:
            raise Refused(404, {"error": "no such route"})
        return _ROUTES[self.path](self.server, body)


def _chain(server: MentisDbServer, body: Mapping[str, Any]) -> list[Thought]:
    key = str(body["chain_key"])
    if not re.fullmatch("[a-z0-9_-]{1,300}", key):
        raise Refused(400, {"error": "a chain's name makes no file"})
    return server.chains.setdefault(key, [])


def _append(server: MentisDbServer, body: Any) -> Any:
    chain = _chain(server, body)
    if not body["content"].strip() or "\0" in body["content"]:
        raise Refused(400, {"error": "content is empty"})
    if len(json.dumps(body)) > 2 << 20:
        raise Refused(413, {"error": "length limit exceeded"})
    known = {"chain_key", "agent_name", "agent_owner"}
    thought = {
        "agent_id": "memorybus",
        "tags": [],
        "relations": [],
        **{name: value for name, value in body.items() if name not in known},
        "id": f"00000000-0000-4000-8000-{next(server.numbers):012}",
        "index": len(chain),
        "timestamp": _BORN,
    }
    chain.append(thought)
    return {"thought": thought, "head_hash": "h"}


def _search(server: MentisDbServer, body: Any) -> Any:
    wanted = set(body["tags_any"])
    found = [one for one in _chain(server, body) if wanted.intersection(one["tags"])]
    limit = body.get("limit")
    return {"thoughts": found[-limit:] if limit else found}


def _near(server: MentisDbServer, keys: list[str], body: Any) -> Any:
    words = set(re.findall(r"\w+", body["text"].lower()))
    hits: dict[str, Any] = {}
    for key in keys:
        for one in _chain(server, {"chain_key": key}):
            score = len(words.intersection(re.findall(r"\w+", one["content"].lower())))
            if score:
                hits.setdefault(
                    one["id"], {"chain_key": key, "thought": one, "score": {"total": score}}
                )
    ranked = sorted(hits.values(), key=lambda hit: -hit["score"]["total"])
    return {"backend": "lexical", "total": len(ranked), "results": ranked[: body["limit"]]}


def _ranked(server: MentisDbServer, body: Any) -> Any:
    return _near(server, _with_ancestors(server, body["chain_key"]), body)


def _with_ancestors(server: MentisDbServer, key: str) -> list[str]:
    first = next(iter(_chain(server, {"chain_key": key})), None)
    parents = [edge["chain_key"] for edge in (first or {}).get("relations", ())]
    kinds = [edge["kind"] for edge in (first or {}).get("relations", ())]
    if kinds != ["BranchesFrom"] or not parents[0]:
        return [key]
    return [key, *_with_ancestors(server, parents[0])]


def _federated(server: MentisDbServer, body: Any) -> Any:
    return _near(server, body["chain_keys"], body)


def _listed(server: MentisDbServer, _: Any) -> Any:
    return {"default_chain_key": "default", "chain_keys": sorted(server.chains), "chains": []}


def _branch(server: MentisDbServer, body: Any) -> Any:
    source, target = body["source_chain_key"], body["branch_chain_key"]
    at = body["branch_thought_id"]
    if server.chains.get(target) or at not in {one["id"] for one in server.chains[source]}:
        raise Refused(400, {"error": "the branch exists, or its thought does not"})
    relation = {"kind": "BranchesFrom", "target_id": at, "chain_key": source}
    genesis = {
        "chain_key": target,
        "thought_type": "Checkpoint",
        "content": f"Branched from {source}",
        "tags": [],
        "relations": [relation],
    }
    thought = _append(server, genesis)["thought"]
    return {
        "branch_chain_key": target,
        "genesis_thought_id": thought["id"],
        "source_chain_key": source,
        "branch_thought_id": at,
    }


def _traverse(server: MentisDbServer, body: Any) -> Any:
    first = body["anchor_index"] + (0 if body["include_anchor"] else 1)
    found = _chain(server, body)[first:]
    size = body["chunk_size"]
    return {"thoughts": found[:size], "has_more": len(found) > size}


_ROUTES: Mapping[str, Callable[[MentisDbServer, Any], Any]] = {
    "/v1/thoughts": _append,
    "/v1/search": _search,
    "/v1/ranked-search": _ranked,
    "/v1/federated-search": _federated,
    "/v1/chains": _listed,
    "/v1/chains/branch": _branch,
    "/v1/thoughts/traverse": _traverse,
}


def mentisdb_server() -> AbstractContextManager[MentisDbServer]:
    """Serve while the block runs."""
    return serving(MentisDbServer())
