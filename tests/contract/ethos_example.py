"""A provider of the two-method contract, as a stranger would write it: it knows no memorybus."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace


class MarkdownNotes:
    """Two Markdown files: MEMORY.md per personality, USER.md per person."""

    def __init__(self, dir: str, calls: list | None = None) -> None:  # noqa: A002  its own word
        self.dir = Path(dir)
        self.calls = [] if calls is None else calls

    async def prefetch(self, ctx):
        await asyncio.sleep(0)
        titles = {"user": "About you", "memory": "Memory"}
        found = {store: self._file(store, ctx) for store in titles}
        parts = [
            f"## {titles[store]}\n\n{path.read_text()}"
            for store, path in found.items()
            if path.exists()
        ]
        content = "\n\n".join(parts)
        return SimpleNamespace(content=content, truncated=False) if content else None

    async def sync(self, ctx, updates):
        self.calls.append((ctx, list(updates)))
        for update in updates:
            await asyncio.sleep(0)
            path = self._file(update.store, ctx)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text() if path.exists() else ""
            path.write_text(self._changed(text, update))

    def _file(self, store, ctx):
        if store == "user":
            return self.dir / "users" / ctx.user_id / "USER.md"
        return self.dir / "personalities" / ctx.personality_id / "MEMORY.md"

    def _changed(self, text, update):
        if update.action == "add":
            return f"{text.rstrip()}\n\n{update.content.strip()}\n".lstrip()
        if update.action == "replace":
            return f"{update.content.strip()}\n"
        kept = [line for line in text.split("\n") if update.substring_match not in line]
        return "\n".join(kept)


class Rows:
    """One row for each key and store, as the contract's own documentation keeps them."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)

    async def prefetch(self, ctx):
        stores = {"user": "About You", "memory": "Memory"}
        known = {store: self._rows().get(self._key(store, ctx), "") for store in stores}
        parts = [f"## {stores[store]}\n\n{text}" for store, text in known.items() if text.strip()]
        if not parts:
            return None
        return {"content": "\n\n".join(parts), "source": "custom", "truncated": False}

    async def sync(self, ctx, updates):
        rows = self._rows()
        for update in updates:
            key = self._key(update.store, ctx)
            rows[key] = self._changed(rows.get(key, ""), update).strip()
            if not rows[key]:
                del rows[key]
        self.file.write_text(json.dumps(rows))

    def _rows(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def _key(self, store, ctx):
        if store == "user":
            return f"user {ctx.user_id or ctx.session_key}"
        personal = ctx.memory_scope == "per-personality" and ctx.personality_id
        return f"memory {ctx.session_key}:{ctx.personality_id}" if personal else ctx.session_key

    def _changed(self, text, update):
        if update.action == "add":
            return f"{text.rstrip()}\n\n{update.content.strip()}"
        if update.action == "replace":
            return update.content
        lines = text.split("\n")
        return "\n".join(line for line in lines if update.substring_match not in line)


class ByMeaning:
    """Finds by the query, in words of its own, and not all that it has."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []

    def prefetch(self, ctx):
        self.asked.append(ctx.query)
        return SimpleNamespace(
            content="- Drinks sencha.\n- Has a kettle.", source="vector", truncated=True
        )

    def sync(self, ctx, updates):
        self.asked.append(ctx.query)


class FiveMethods:
    """The later form of the contract: other methods, and `sync` the other way round."""

    async def prefetch(self, ctx):
        return None

    async def read(self, key, ctx):
        return None

    async def search(self, query, ctx, opts=None):
        return []

    async def sync(self, updates, ctx):
        raise AssertionError("it was called as what it is not")

    async def list(self, ctx, opts=None):
        return []


def made_later(**options):
    """Make one, as a plain function does."""
    return FiveMethods()


class UnnamedArguments(FiveMethods):
    """The later form under names that say nothing."""

    async def sync(self, *given):
        raise AssertionError("it was called as what it is not")


class HalfOfIt:
    """Lacks one of the two methods."""

    def prefetch(self, ctx):
        return None


class PlainMethods:
    """The same contract without coroutines, kept in a dictionary; answers with mappings."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def prefetch(self, ctx):
        text = self.texts.get(ctx.user_id)
        return None if text is None else {"content": text, "source": "custom", "truncated": False}

    def sync(self, ctx, updates):
        for update in updates:
            self.texts[ctx.user_id] = update.content


class Failing:
    """Raises what it was made with."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def prefetch(self, ctx):
        raise self.error

    async def sync(self, ctx, updates):
        raise self.error


class Endless:
    """Coroutines that never end."""

    async def prefetch(self, ctx):
        await asyncio.Event().wait()

    async def sync(self, ctx, updates):
        await asyncio.Event().wait()
