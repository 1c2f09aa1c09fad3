"""Laws of tracing, with the SDK and without it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from opentelemetry.util._once import Once

from trimtab.runtime import tracing
from trimtab.runtime.tracing import NOTHING


@pytest.fixture
def no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API as it is before anybody has set a provider."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())


@pytest.fixture
def exporter(no_provider: None) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    provider.shutdown()


@pytest.mark.usefixtures("no_provider")
def test_without_a_provider_every_span_is_the_same_nothing() -> None:
    tracer = tracing.tracer("test")
    assert not tracer.active
    with tracer.span("reconcile", links=(None,), attributes={"a": 1}) as span:
        assert span is NOTHING
        span.set("key", "value")
        assert span.link is None
        assert tracing.current() is None
        assert tracing.trace_id() == ""


def test_event_reconcile_and_write_are_linked(exporter: InMemorySpanExporter) -> None:
    tracer = tracing.tracer("test")
    with tracer.span("watch event"):
        cause = tracing.current()
    with tracer.span("reconcile", links=(cause, None)) as reconcile:
        with tracer.span("write", attributes={"verb": "apply"}) as span:
            span.set("skipped", False)
    event, write, reconciled = exporter.get_finished_spans()
    assert [link.context for link in reconciled.links] == [event.context]
    assert reconciled.parent is None
    assert reconcile.link == reconciled.context
    assert write.parent == reconciled.context
    assert write.attributes == {"verb": "apply", "skipped": False}


def test_a_failure_is_recorded_and_goes_on(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(KeyError), tracing.tracer("test").span("reconcile"):
        raise KeyError("shop")
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "KeyError: 'shop'"
    assert [event.name for event in span.events] == ["exception"]


def test_a_cancellation_is_no_error(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(asyncio.CancelledError):
        with tracing.tracer("test").span("reconcile"):
            raise asyncio.CancelledError
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.UNSET


def test_a_provider_that_comes_late_is_used(no_provider: None) -> None:
    tracer = tracing.tracer("test")
    assert tracer.span("early") is NOTHING
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    with tracer.span("late") as span:
        assert span is not NOTHING
        assert span.link is not None
        assert tracing.trace_id() == f"{span.link.trace_id:032x}"
    assert tracing.trace_id() == ""
    provider.shutdown()


def test_nothing_of_it_is_imported_by_tracing_nothing() -> None:
    code = (
        "import sys\nfrom trimtab.runtime import tracing\n"
        "with tracing.tracer('a').span('b') as span: assert span is tracing.NOTHING\n"
        "assert tracing.current() is None\n"
        "print([name for name in sys.modules if 'opentelemetry' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
