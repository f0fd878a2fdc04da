"""What spans are made, of what, and when none is."""

import subprocess
import sys

import pytest
from helpers.tracing.spans import Kept, is_linked, kept, traceparent
from memorybus.testing import FakeClock
from memorybus.tracing.otel import MOST_APPLIES
from memorybus.tracing.spans import NO_SPAN, Tracing
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased
from opentelemetry.trace import SpanKind, StatusCode

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
RANDOM_SAMPLED = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-03"
DROPPED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

STRANGE = {
    "digit": "1",
    "no trace": "00-" + "0" * 32 + "-b7ad6b7169203331-01",
    "control": "\0" * 54 + "1",
    "letters": "é" * 54 + "1",
    "long": "9" * 100_000,
}
"""What whoever can write to Redis may put where a traceparent stands."""


def test_without_a_provider_there_are_no_spans():
    """A process in which nobody configured tracers makes no span, and looks at no event."""

    def looked() -> str:
        raise AssertionError("it was looked at")

    tracing, traces = Tracing("mb"), (looked() for _ in range(1))
    assert tracing.publish("0" * 32, "TurnCompleted") is NO_SPAN
    assert tracing.append(1, traces) is tracing.apply("p", 0, 1, traces) is NO_SPAN
    assert tracing.recall() is tracing.answer("p", SAMPLED) is NO_SPAN
    assert tracing.current() == ""


def test_opentelemetry_is_not_loaded_for_spans_that_nobody_wants():
    """A process that never imported OpenTelemetry does not load it to publish."""
    program = (
        "import sys; from memorybus.tracing.spans import Tracing; "
        "Tracing('mb').publish('', ''); print('opentelemetry' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_provider_that_comes_later_is_found():
    """A bus that was there before its host's tracers uses them a tenth of a second later."""
    clock = FakeClock()
    tracing = Tracing("mb", clock)
    assert tracing.recall() is NO_SPAN
    with kept() as spans:
        assert tracing.recall() is NO_SPAN
        clock.advance(0.1)
        with tracing.recall():
            pass
        assert spans.one("recall").name == "recall mb"


def test_what_is_published_is_told_by_id():
    """A publish is a producer's span below its host's, with the names of the conventions."""
    with kept() as spans, spans.tracer.start_as_current_span("turn") as turn:
        tracing = Tracing("mb")
        with tracing.publish("ab" * 16, "TurnCompleted") as span:
            said = span.trace
            assert tracing.current() == said
        found = spans.one("publish")
    assert (found.name, found.kind, said) == ("publish mb", SpanKind.PRODUCER, traceparent(found))
    assert found.parent is not None
    assert found.parent.span_id == turn.get_span_context().span_id
    assert dict(found.attributes or {}) == {
        "messaging.system": "memorybus",
        "messaging.operation.name": "publish",
        "messaging.operation.type": "create",
        "messaging.destination.name": "mb",
        "messaging.message.id": "ab" * 16,
        "memorybus.event.type": "TurnCompleted",
    }


def applied(spans: Kept, traces: list[str]) -> dict[str, object]:
    """Open and close the span of a batch; return its attributes."""
    with Tracing("mb").apply("holo", 3, len(traces), iter(traces)):
        pass
    return dict(spans.one("apply").attributes or {})


def test_a_batch_is_linked_to_its_publishers():
    """An apply has no parent, also within another span; it is linked to whom is sampled."""
    with kept() as spans, spans.tracer.start_as_current_span("other"):
        assert applied(spans, [SAMPLED, "", DROPPED, RANDOM_SAMPLED]) == {
            "messaging.system": "memorybus",
            "messaging.operation.name": "apply",
            "messaging.operation.type": "process",
            "messaging.destination.name": "mb",
            "messaging.consumer.group.name": "holo",
            "messaging.destination.partition.id": "3",
            "messaging.batch.message_count": 4,
            "memorybus.provider": "holo",
        }
        found = spans.one("apply")
    assert (found.parent, found.kind) == (None, SpanKind.CONSUMER)
    assert [f"{link.context.trace_id:032x}"[:2] for link in found.links] == ["0a", "1a"]


def test_a_batch_of_unsampled_events_has_no_span():
    """Whose publishers are all dropped leaves no span, whatever the process samples."""
    with kept(ALWAYS_ON) as spans:
        assert Tracing("mb").apply("holo", 3, 2, [DROPPED, ""]) is NO_SPAN
        assert Tracing("mb").append(1, [DROPPED]) is NO_SPAN
    assert not spans.of("apply")


def test_a_drain_makes_a_bounded_number_of_spans():
    """G10: batches beyond so many in a second have no span; in the next second they have."""
    clock = FakeClock()
    tracing = Tracing("mb", clock)
    with kept() as spans:
        for _ in range(MOST_APPLIES + 5):
            with tracing.apply("holo", 3, 1, [SAMPLED]):
                pass
        assert len(spans.of("apply")) == MOST_APPLIES
        clock.advance(1.0)
        with tracing.apply("holo", 3, 1, [SAMPLED]):
            pass
    assert len(spans.of("apply")) == MOST_APPLIES + 1


def test_events_without_a_word_are_the_samplers_choice():
    """Events of publishers without tracers get a span if the process's sampler says so."""
    with kept() as spans:
        applied(spans, ["", ""])
    with kept(ParentBased(ALWAYS_OFF)) as spans, Tracing("mb").apply("holo", 0, 1, [""]):
        pass
    assert not spans.of("apply")


def test_an_append_goes_on_with_its_first_publisher():
    """A send to the log is a child of the first sampled publisher, and linked to the others."""
    with kept(ParentBased(ALWAYS_OFF)) as spans:
        with Tracing("mb").append(3, [DROPPED, SAMPLED, RANDOM_SAMPLED]):
            pass
        found = spans.one("append")
    assert found.parent is not None
    assert f"{found.parent.span_id:016x}" == SAMPLED.split("-")[2]
    assert [f"{link.context.trace_id:032x}"[:2] for link in found.links] == ["1a"]
    assert (found.attributes or {})["messaging.batch.message_count"] == 3


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
def test_what_is_no_traceparent_is_no_link(strange):
    """Anything may stand in an envelope: it is neither followed nor an error."""
    with kept() as spans:
        applied(spans, [strange])
        with Tracing("mb").answer("holo", strange), Tracing("mb").append(1, [strange]):
            pass
    assert spans.one("apply").links == ()
    assert spans.one("answer").parent is spans.one("append").parent is None


def test_links_are_bounded():
    """G10: a batch of any size has as many links as the SDK keeps, and no more work."""
    with kept() as spans:
        applied(spans, [SAMPLED] * 500)
    assert len(spans.one("apply").links) == 128


def test_an_error_is_told_by_its_class():
    """The text of an error may quote a person: a span has its class alone."""
    with kept() as spans:
        with pytest.raises(ValueError, match="Ann"), Tracing("mb").answer("holo", ""):
            raise ValueError("Ann said a secret")
        with Tracing("mb").answer("holo", SAMPLED):
            Tracing("mb").failed(KeyError("Ann"))
        raised, noted = spans.of("answer")
    assert raised.status.status_code is noted.status.status_code is StatusCode.ERROR
    assert [(one.attributes or {})["error.type"] for one in (raised, noted)] == [
        "ValueError",
        "KeyError",
    ]
    assert "Ann" not in raised.to_json() + noted.to_json()


def test_an_answer_is_a_child_of_the_question():
    """Who asks is the parent of who answers, by the traceparent that the question carries."""
    with kept() as spans:
        with Tracing("mb").recall() as asked:
            asked.set_counts(lines=3)
            with Tracing("mb").answer("holo", asked.trace):
                pass
        question, answer = spans.one("recall"), spans.one("answer")
    assert answer.parent is not None
    assert question.context is not None
    assert answer.parent.span_id == question.context.span_id
    assert (question.attributes or {})["memorybus.lines"] == 3
    assert not is_linked(answer.links, question)
