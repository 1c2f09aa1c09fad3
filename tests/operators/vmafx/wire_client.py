"""A client that knows the .proto files and nothing else of the code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

import trimtab

PROTOS = Path(trimtab.__file__).parent / "operators" / "vmafx" / "wire"
CONTROLLER = "vmafx.controller.v1.VmafxController"
SCORING = "vmafx.v1.VmafxScoring"


def described(folder: Path) -> descriptor_pool.DescriptorPool:
    """What protoc makes of the files, in a pool of its own."""
    from grpc_tools import protoc

    out = folder / "all.pb"
    names = sorted(path.name for path in PROTOS.glob("*.proto"))
    arguments = ("", f"-I{PROTOS}", f"--descriptor_set_out={out}", *names)
    assert protoc.main(arguments) == 0
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.Add(file)
    return pool


class WireClient:
    """Calls any method of the files by its name, as grpcurl does."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        pool: descriptor_pool.DescriptorPool,
        token: str = "",
    ) -> None:
        self._channel = channel
        self._pool = pool
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()

    def message(self, name: str, **fields: Any) -> Any:
        """A message of a full name."""
        return self._made(name)(**fields)

    def _made(self, name: str) -> Any:
        found = self._pool.FindMessageTypeByName(name)
        return message_factory.GetMessageClass(found)

    async def call(
        self, method: str, service: str = CONTROLLER, /, **fields: Any
    ) -> Any:
        """The answer of a method that has one."""
        found = self._pool.FindServiceByName(service).FindMethodByName(method)
        request = self._made(found.input_type.full_name)(**fields)
        called: Any = self._channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=_bytes,
            response_deserializer=self._made(found.output_type.full_name).FromString,
        )
        return await called(request, metadata=self._metadata, timeout=20)

    async def many(
        self, method: str, service: str = CONTROLLER, /, **fields: Any
    ) -> list[Any]:
        """All answers of a method that streams them."""
        found = self._pool.FindServiceByName(service).FindMethodByName(method)
        called: Any = self._channel.unary_stream(
            f"/{service}/{method}",
            request_serializer=_bytes,
            response_deserializer=self._made(found.output_type.full_name).FromString,
        )
        request = self._made(found.input_type.full_name)(**fields)
        answers = called(request, metadata=self._metadata, timeout=20)
        return [each async for each in answers]

    async def poured(
        self, method: str, service: str, requests: Iterable[Any]
    ) -> list[Any]:
        """All answers of a method that takes a stream, too."""
        found = self._pool.FindServiceByName(service).FindMethodByName(method)
        called: Any = self._channel.stream_stream(
            f"/{service}/{method}",
            request_serializer=_bytes,
            response_deserializer=self._made(found.output_type.full_name).FromString,
        )
        answers = called(iter(requests), metadata=self._metadata, timeout=20)
        return [each async for each in answers]


def _bytes(message: Message) -> bytes:
    return message.SerializeToString()
