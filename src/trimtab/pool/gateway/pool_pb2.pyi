from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AcquireRequest(_message.Message):
    __slots__ = ("namespace", "pool", "tenant", "holder", "shape", "cpu", "memory", "ttl", "wait")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pool: str
    tenant: str
    holder: str
    shape: str
    cpu: str
    memory: str
    ttl: int
    wait: float
    def __init__(self, namespace: _Optional[str] = ..., pool: _Optional[str] = ..., tenant: _Optional[str] = ..., holder: _Optional[str] = ..., shape: _Optional[str] = ..., cpu: _Optional[str] = ..., memory: _Optional[str] = ..., ttl: _Optional[int] = ..., wait: _Optional[float] = ...) -> None: ...

class Granted(_message.Message):
    __slots__ = ("checkout", "worker", "uid", "namespace", "address", "port", "token", "epoch", "ca", "renew_within", "source", "deadline", "warning")
    CHECKOUT_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CA_FIELD_NUMBER: _ClassVar[int]
    RENEW_WITHIN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    checkout: str
    worker: str
    uid: str
    namespace: str
    address: str
    port: int
    token: str
    epoch: int
    ca: str
    renew_within: float
    source: str
    deadline: str
    warning: str
    def __init__(self, checkout: _Optional[str] = ..., worker: _Optional[str] = ..., uid: _Optional[str] = ..., namespace: _Optional[str] = ..., address: _Optional[str] = ..., port: _Optional[int] = ..., token: _Optional[str] = ..., epoch: _Optional[int] = ..., ca: _Optional[str] = ..., renew_within: _Optional[float] = ..., source: _Optional[str] = ..., deadline: _Optional[str] = ..., warning: _Optional[str] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("namespace", "pool", "checkout", "holder", "clean", "worker")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    CHECKOUT_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    CLEAN_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pool: str
    checkout: str
    holder: str
    clean: bool
    worker: str
    def __init__(self, namespace: _Optional[str] = ..., pool: _Optional[str] = ..., checkout: _Optional[str] = ..., holder: _Optional[str] = ..., clean: _Optional[bool] = ..., worker: _Optional[str] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("holder", "checkouts")
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    CHECKOUTS_FIELD_NUMBER: _ClassVar[int]
    holder: str
    checkouts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, holder: _Optional[str] = ..., checkouts: _Optional[_Iterable[str]] = ...) -> None: ...

class Renewed(_message.Message):
    __slots__ = ("renew_within",)
    RENEW_WITHIN_FIELD_NUMBER: _ClassVar[int]
    renew_within: float
    def __init__(self, renew_within: _Optional[float] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ("namespace", "pool", "worker")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pool: str
    worker: str
    def __init__(self, namespace: _Optional[str] = ..., pool: _Optional[str] = ..., worker: _Optional[str] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("namespace", "pool")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pool: str
    def __init__(self, namespace: _Optional[str] = ..., pool: _Optional[str] = ...) -> None: ...

class Workers(_message.Message):
    __slots__ = ("workers",)
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    def __init__(self, workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ("name", "state", "shape", "tenant", "owner", "holder", "epoch", "since", "reason", "gone")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: str
    shape: str
    tenant: str
    owner: str
    holder: str
    epoch: int
    since: str
    reason: str
    gone: bool
    def __init__(self, name: _Optional[str] = ..., state: _Optional[str] = ..., shape: _Optional[str] = ..., tenant: _Optional[str] = ..., owner: _Optional[str] = ..., holder: _Optional[str] = ..., epoch: _Optional[int] = ..., since: _Optional[str] = ..., reason: _Optional[str] = ..., gone: _Optional[bool] = ...) -> None: ...
