"""Activation over gRPC: the one call to a worker that a pool may want in that way.

The worker is known by its certificate and the pool by its token, as over HTTPS; what is
said is in ``worker/activation.proto``. A worker is activated once, so its channel is
not kept.
"""

from __future__ import annotations

from typing import Any, Final

from trimtab.pool.calls import CallFailed, Target
from trimtab.pool.kinds import Activation

METHOD: Final = "/trimtab.pool.v1.Activation/Activate"
LARGEST: Final = 64 * 1024
SAID: Final = 300


async def activate(
    target: Target, *, epoch: int, tenant: str, activation: Activation
) -> None:
    """Bind a worker to a tenant.

    Errors: :class:`CallFailed`, also where gRPC is not installed.
    """
    try:
        # Here, because gRPC takes memory that who does not speak it can spare.
        import grpc

        from trimtab.pool.worker import activation_pb2 as messages
    except ImportError as error:
        raise CallFailed(
            f"Worker {target.name} is to be activated over gRPC, which is not "
            "installed: install trimtab[pool-grpc], or activate it over http."
        ) from error
    message = messages.ActivateRequest(tenant=tenant, epoch=epoch)
    try:
        async with _channel(grpc, target, activation.port or target.port) as channel:
            call = channel.unary_unary(
                method_of(activation),
                request_serializer=messages.ActivateRequest.SerializeToString,
                response_deserializer=messages.Activated.FromString,
            )
            bearer = (("authorization", f"Bearer {target.bearer}"),)
            await call(message, metadata=bearer, timeout=activation.timeout)
    except grpc.aio.AioRpcError as error:
        said = " ".join((error.details() or "").split())[:SAID]
        raise CallFailed(
            f"Worker {target.name} answered its activation over gRPC with "
            f"{error.code().name}: {said}"
        ) from error


def method_of(activation: Activation) -> str:
    """The full name of what is called: ours, unless the pool names another."""
    ours = activation.path == Activation().path
    return METHOD if ours else activation.path


def _channel(grpc: Any, target: Target, port: int) -> Any:
    host = f"[{target.address}]" if ":" in target.address else target.address
    options = (
        ("grpc.ssl_target_name_override", target.name),
        ("grpc.max_receive_message_length", LARGEST),
        ("grpc.enable_http_proxy", 0),
    )
    trusted = grpc.ssl_channel_credentials(target.ca)
    return grpc.aio.secure_channel(f"{host}:{port}", trusted, options=options)
