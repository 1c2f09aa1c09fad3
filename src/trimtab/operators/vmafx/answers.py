"""What a controller answers, and what that makes of a job: pure, without a call."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import grpc
import msgspec
from msgspec.structs import replace

from trimtab.client import ConfigError, TrimtabError
from trimtab.operators.vmafx.kinds import VmafxJobStatus
from trimtab.operators.vmafx.wire import controller_pb2 as wire

_LONGEST = 1024
_CODES = grpc.StatusCode


class Trouble(TrimtabError):
    """The controller did not do what was asked, and why.

    It may pass by itself (``passing``), or a person must mend it; and where ``final``
    is true, asking again is of no use.
    """

    def __init__(
        self, sentence: str, *, reason: str, passing: bool = False, final: bool = False
    ) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.passing = passing
        self.final = final


class Missing(Trouble):
    """The controller knows no such job."""


class _Kind(msgspec.Struct, frozen=True):
    reason: str
    sentence: str
    passing: bool = False


_AWAY = _Kind("Unreachable", "does not answer", True)
_KINDS: dict[grpc.StatusCode, _Kind] = {
    _CODES.UNAVAILABLE: _AWAY,
    _CODES.DEADLINE_EXCEEDED: _AWAY,
    _CODES.CANCELLED: _AWAY,
    _CODES.UNAUTHENTICATED: _Kind("Unauthenticated", "does not accept our token"),
    _CODES.PERMISSION_DENIED: _Kind("Denied", "does not let us do this"),
    _CODES.UNIMPLEMENTED: _Kind("OtherVersion", "is of a version without this"),
    _CODES.RESOURCE_EXHAUSTED: _Kind("Busy", "has no room", True),
    _CODES.FAILED_PRECONDITION: _Kind("NotReady", "is not ready for this"),
}
_ELSE = _Kind("Failing", "fails", True)


def trouble(error: grpc.aio.AioRpcError | ConfigError, *, address: str) -> Trouble:
    """What went wrong with a call, for people and for the next one."""
    if isinstance(error, ConfigError):
        return Trouble(str(error), reason="NoToken")
    code, said = error.code(), _short(error.details() or "")
    if code is _CODES.NOT_FOUND:
        sentence = f"The controller at {address} knows no such job: {said}"
        return Missing(sentence, reason="NotFound", passing=True)
    if code is _CODES.INVALID_ARGUMENT:
        return Trouble(said, reason="Refused", final=True)
    kind = _KINDS.get(code, _ELSE)
    # What a channel says of a connection changes from call to call.
    told = "" if kind is _AWAY else f": {said}" if said else ""
    sentence = f"The controller at {address} {kind.sentence}{told}"
    sentence = sentence if sentence.endswith(".") else f"{sentence}."
    return Trouble(sentence, reason=kind.reason, passing=kind.passing)


def followed(status: VmafxJobStatus, job: wire.Job, *, now: datetime) -> VmafxJobStatus:
    """The status of a job that is so at the controller.

    Guarantees: what is over stays as it is. Times are the controller's, where it says
    them.

    Errors: :class:`Trouble` for a state that this version does not know.
    """
    if is_over(status):
        return status
    when = datetime.fromtimestamp(job.updated_at, UTC) if job.updated_at else now
    known = replace(
        status,
        assignedNode=job.assigned_node or status.assignedNode,
        attempts=job.attempt or status.attempts,
    )
    if job.status == wire.PENDING:
        return replace(known, phase="Pending", message="")
    if job.status == wire.RUNNING:
        began = status.startedAt if status.phase == "Running" else when
        return replace(known, phase="Running", startedAt=began, message="")
    if job.status == wire.COMPLETED:
        return _completed(known, job, when)
    if job.status == wire.FAILED:
        return ended(known, job.error or "It failed, and nobody said why.", when)
    if job.status == wire.CANCELLED:
        why = job.error or "It was cancelled by the controller."
        return replace(ended(known, why, when), phase="Cancelled")
    raise Trouble(
        f"The controller says that the job is in state {job.status}, which this "
        "version does not know.",
        reason="OtherVersion",
    )


def ended(status: VmafxJobStatus, why: str, when: datetime) -> VmafxJobStatus:
    """The status of a job that failed."""
    return replace(
        status, phase="Failed", message=_short(why), finishedAt=when, progress=None
    )


def is_over(status: VmafxJobStatus) -> bool:
    """Whether nothing comes of the job any more."""
    return status.phase in ("Succeeded", "Failed", "Cancelled")


def _completed(status: VmafxJobStatus, job: wire.Job, when: datetime) -> VmafxJobStatus:
    values = {"score": job.final_score, **job.features}
    for name, value in values.items():
        if not math.isfinite(value):
            why = f"The controller reported the {name} {value}, which is no number."
            return ended(status, why, when)
    return replace(
        status,
        phase="Succeeded",
        score=job.final_score,
        features=dict(job.features),
        startedAt=status.startedAt or when,
        finishedAt=when,
        progress=100,
        message="",
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
