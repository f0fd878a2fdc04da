"""A provider of the two-method contract, as a stranger would write it: it knows no memorybus."""

import asyncio
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
