"""Outcomes: what an error of a handler means for its object, its log and its queue."""

from __future__ import annotations

from trimtab.cache import Key
from trimtab.client.errors import Conflict, NotFound, TrimtabError
from trimtab.runtime.context import Context
from trimtab.runtime.fence import NotLeader
from trimtab.runtime.metrics import Outcome
from trimtab.runtime.reconcile import Retry, Terminal
from trimtab.runtime.workqueue import WorkQueue

# Somebody wrote in between, and the watch is about to say so.
CONFLICT_PAUSE = 0.05
# A lease that is not lost is renewed in a time of about this.
LEASE_PAUSE = 1.0


def settle(queue: WorkQueue, key: Key, error: Exception, ctx: Context) -> Outcome:
    """Put a key whose reconcile failed where it belongs, and say so in the log."""
    match error:
        case Retry():
            pause = queue.failed(key, after=error.after)
            ctx.log.info("Not yet: %s; again in %.3g s.", told(error), pause)
            return "retry"
        case Terminal():
            queue.done(key)
            ctx.log.error("Given up until it changes: %s", error)
            return "terminal"
        case NotLeader():
            # If the lease is lost, so is this queue; if it is renewed, this goes on.
            queue.failed(key, after=LEASE_PAUSE)
            ctx.log.info("Left to whoever leads next: %s", error)
            return "retry"
        case Conflict() if not any(cause.why == "retry" for cause in ctx.causes):
            queue.failed(key, after=CONFLICT_PAUSE)
            ctx.log.debug("Somebody else wrote first: %s", error)
            return "retry"
        case Conflict():
            pause = queue.failed(key)
            ctx.log.info(
                "Again somebody else wrote first: %s; again in %.3g s.",
                told(error),
                pause,
            )
            return "retry"
        case NotFound() if _is_about(error, ctx):
            # It was deleted under the handler, and the watch is about to say so.
            queue.failed(key)
            ctx.log.debug("It is gone: %s", error)
            return "retry"
        case TimeoutError():
            pause = queue.failed(key)
            ctx.log.error("It did not end within its budget; again in %.3g s.", pause)
            return "timeout"
        case TrimtabError():
            pause = queue.failed(key)
            ctx.log.warning("%s; again in %.3g s.", told(error), pause)
            return "error"
        case _:
            pause = queue.failed(key)
            ctx.log.error(
                "The handler failed: %s; again in %.3g s.",
                told(error),
                pause,
                exc_info=error,
            )
            return "error"


def told(error: Exception) -> str:
    """An error as part of a sentence; of Python's own, the type is half of it."""
    text = str(error).rstrip(".")
    if isinstance(error, TrimtabError | Retry | Terminal):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_about(error: NotFound, ctx: Context) -> bool:
    """Whether it is the reconciled object itself that is not there."""
    info = type(ctx.parent).__resource__
    wanted = (info.group, info.plural, ctx.parent.metadata.name)
    found = error.details
    return (found.group, found.kind, found.name) == wanted
