"""Running the tools that write (see `arguments`), inside the transaction their caller has open."""

import json

from memorybus_providers.base import HookContext, RecallScope
from memorybus_providers.finding.source import FactSource
from memorybus_providers.language.words import folded_words
from memorybus_providers.ranking.ranking import Fact
from memorybus_providers.ranking.succession import Correction
from memorybus_providers.remembering.notes import NOTE, Note
from memorybus_providers.remembering.parts import Parts
from memorybus_providers.tools.arguments import Add, Correct, Feedback, Writing
from memorybus_providers.tools.shown import ToolResult, failure_result, show_fact


class WritingTools:
    """Writes by the parts of a store."""

    def __init__(self, parts: Parts, source: FactSource) -> None:
        self._parts = parts
        self._source = source

    def write(self, call: Writing, ctx: HookContext) -> ToolResult:
        """Run a tool once per event id; a call that comes again gets its first result."""
        before = self._parts.results.get(ctx.event_id)
        if before is not None:
            return dict(json.loads(before))
        result = self._run(call, ctx)
        self._parts.results.put(ctx.event_id, json.dumps(result))
        return result

    def _run(self, call: Writing, ctx: HookContext) -> ToolResult:
        match call:
            case Add():
                return self._add(call, ctx)
            case Correct():
                return self._correct(call, ctx)
            case Feedback():
                return self._judge(call, ctx)

    def _correct(self, call: Correct, ctx: HookContext) -> ToolResult:
        if bool(call.fact_id) is bool(call.old_text.strip()):
            return failure_result("memory_correct: give fact_id or old_text, and not both")
        wrong = self._find_wrong(call, ctx)
        # What is not said anew stays as it was filed.
        category = call.category or next((one.category for one in wrong if one.category), "")
        tags = " ".join(call.tags) or next((one.tags for one in wrong if one.tags), "")
        note = Note(NOTE, call.content, category, tags)
        name = self._parts.notes.add(note, ctx) or ""
        made = self._parts.corrections.add(call.fact_id, call.old_text, name, ctx)
        replaced = [show_fact(fact) for fact in wrong if made.corrects(fact)]
        return {"ok": True, "id": name, "replaces": replaced}

    def _find_wrong(self, call: Correct, ctx: HookContext) -> list[Fact]:
        """Return the facts that a call names, as they are before it."""
        scope = RecallScope.own(ctx.scope)
        if call.fact_id:
            return list(self._source.facts_by_name([call.fact_id], scope).values())
        named = Correction("", call.old_text, "", ctx.at)
        near = self._source.facts_holding([folded_words(call.old_text)], scope)
        return [fact for fact in near if named.corrects(fact)]

    def _add(self, call: Add, ctx: HookContext) -> ToolResult:
        note = Note(NOTE, call.content, call.category, " ".join(call.tags))
        return {"ok": True, "id": self._parts.notes.add(note, ctx)}

    def _judge(self, call: Feedback, ctx: HookContext) -> ToolResult:
        trust = self._parts.judgements.add(call.fact_id, ctx, helpful=call.helpful)
        if trust is None:
            return failure_result(f"no fact {call.fact_id}: give the id that memory_search shows")
        return {"ok": True, "id": call.fact_id, "trust": trust}
