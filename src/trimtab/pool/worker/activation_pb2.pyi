from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ActivateRequest(_message.Message):
    __slots__ = ("tenant", "epoch")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    epoch: int
    def __init__(self, tenant: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class Activated(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
