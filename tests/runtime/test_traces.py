"""Traces of an operator: from the watch event to the reconcile to the write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util._once import Once

from tests.runtime.operating import Shop, client_in, here, running, shop, until
from trimtab import Context, Metadata, Operator, Result
from trimtab.kinds import ConfigMap
from trimtab.runtime import controller, sources, writing
from trimtab.testing import Cluster


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    for module in (controller, sources, writing):
        monkeypatch.setattr(module.TRACER, "_real", None)
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    provider.shutdown()


async def test_a_write_is_traced_back_to_the_change_that_caused_it(
    cluster: Cluster, namespace: str, collected: InMemorySpanExporter
) -> None:
    app = Operator("shops")

    @app.reconciles(Shop, scope=here(namespace), owns=[ConfigMap])
    async def shelve(site: Shop, ctx: Context) -> Result:
        await ctx.apply(ConfigMap(metadata=Metadata(name=site.metadata.name)))
        return ctx.done(status=type(site.status)(selling=site.spec.goods))

    async with client_in(cluster, namespace) as client:
        async with running(app, cluster, client):
            # What is there when it begins to lead has no event; this one has.
            await client.create(shop("first"))
            await until(client, "first", lambda each: each.status.selling)
            await client.create(shop("corner"))
            await until(client, "corner", lambda each: each.status.selling)
    spans = collected.get_finished_spans()
    corner = f"{namespace}/corner"
    applied = named(f"apply ConfigMap {corner}", spans)
    reconciled = parent_of(applied, spans)
    assert reconciled.name == "reconcile shelve"
    assert parent_of(named(f"status of Shop {corner}", spans), spans) is reconciled
    linked = {link.context.span_id for link in reconciled.links}
    (event,) = [each for each in spans if identity(each) in linked]
    assert event.name == "ADDED Shop"
    assert event.attributes is not None
    assert event.attributes["object"] == corner


def named(name: str, spans: Sequence[ReadableSpan]) -> ReadableSpan:
    return next(each for each in spans if each.name == name)


def parent_of(span: ReadableSpan, spans: Sequence[ReadableSpan]) -> ReadableSpan:
    assert span.parent is not None
    return next(each for each in spans if identity(each) == span.parent.span_id)


def identity(span: ReadableSpan) -> int:
    assert span.context is not None
    number: int = span.context.span_id
    return number
