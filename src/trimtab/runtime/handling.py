"""Handling: calling an author's functions, finalizers included, in task or thread."""

from __future__ import annotations

from typing import Any

from trimtab.runtime.blocking import BlockingContext
from trimtab.runtime.context import Context
from trimtab.runtime.definitions import Definition, Handler, is_asynchronous
from trimtab.runtime.reconcile import Result, Retry, Terminal
from trimtab.runtime.threads import Threads
from trimtab.runtime.writing import Writer

NOTHING = Result()


class Handling:
    """Calls the handlers of one definition.

    The finalizer's protocol. Flow: the finalizer goes on before the object is first
    reconciled; on an object that is being deleted the cleanup runs instead, and the
    finalizer comes off when it has succeeded. Guarantees: no object that was reconciled
    goes without a cleanup that succeeded. Assumptions: a cleanup can run twice.
    """

    def __init__(
        self,
        definition: Definition,
        *,
        writer: Writer,
        threads: Threads,
    ) -> None:
        self._definition = definition
        self._writer = writer
        self._threads = threads
        self._awaited = is_asynchronous(definition.handler)
        cleanup = definition.cleanup
        self._cleanup_awaited = cleanup is not None and is_asynchronous(cleanup)

    async def reconcile(self, obj: Any, ctx: Context) -> Result:
        """Call what an object is due for, and write what it stated."""
        definition = self._definition
        if obj.metadata.deletionTimestamp is not None:
            return await self._clean(obj, ctx)
        finalizer = definition.finalizer
        if finalizer and finalizer not in obj.metadata.finalizers:
            wanted = (*obj.metadata.finalizers, finalizer)
            obj = ctx.adopt(await self._writer.finalizers(obj, wanted))
        return await self._call(definition.handler, self._awaited, obj, ctx)

    async def _clean(self, obj: Any, ctx: Context) -> Result:
        cleanup, finalizer = self._definition.cleanup, self._definition.finalizer
        if cleanup is None or finalizer not in obj.metadata.finalizers:
            return NOTHING
        result = await self._call(cleanup, self._cleanup_awaited, obj, ctx)
        if result.after is not None:
            return result  # it wants to look again: not done yet
        obj = ctx.parent
        left = [each for each in obj.metadata.finalizers if each != finalizer]
        await self._writer.finalizers(obj, left)
        return NOTHING

    async def _call(
        self, handler: Handler, awaited: bool, obj: Any, ctx: Context
    ) -> Result:
        try:
            if awaited:
                result: Any = await handler(obj, ctx)  # type: ignore[misc]
            else:
                # Past its budget the thread may go on; until it has ended, nobody
                # else reconciles this object.
                result = await self._threads.run(
                    handler, obj, BlockingContext(ctx), linger=True
                )
        except (Retry, Terminal):
            await ctx.flush()  # what it stated before is the explanation
            raise
        return await self._concluded(result, ctx)

    async def _concluded(self, result: Any, ctx: Context) -> Result:
        """Write what the handler stated, and take its result for what it is."""
        if result is None:
            result = NOTHING
        elif not isinstance(result, Result):
            raise TypeError(
                f"{self._definition.name} returned {result!r}; return ctx.done(…), a "
                "Result, or nothing."
            )
        if result.status is not None:
            ctx.status(result.status)
        if ctx.pending:
            await ctx.flush()
        return result  # type: ignore[no-any-return]
