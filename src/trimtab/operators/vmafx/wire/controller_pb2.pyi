from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PENDING: _ClassVar[JobStatus]
    RUNNING: _ClassVar[JobStatus]
    COMPLETED: _ClassVar[JobStatus]
    FAILED: _ClassVar[JobStatus]
    CANCELLED: _ClassVar[JobStatus]
PENDING: JobStatus
RUNNING: JobStatus
COMPLETED: JobStatus
FAILED: JobStatus
CANCELLED: JobStatus

class ScoringParams(_message.Message):
    __slots__ = ("reference", "distorted", "model", "backend")
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    DISTORTED_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    reference: str
    distorted: str
    model: str
    backend: str
    def __init__(self, reference: _Optional[str] = ..., distorted: _Optional[str] = ..., model: _Optional[str] = ..., backend: _Optional[str] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("id", "status", "scoring", "partial_results", "assigned_node", "error", "created_at", "updated_at", "final_score", "scoring_roots", "attempt", "namespace", "name", "priority", "features", "segment")
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SCORING_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_RESULTS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_NODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    FINAL_SCORE_FIELD_NUMBER: _ClassVar[int]
    SCORING_ROOTS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: JobStatus
    scoring: ScoringParams
    partial_results: _containers.RepeatedScalarFieldContainer[float]
    assigned_node: str
    error: str
    created_at: int
    updated_at: int
    final_score: float
    scoring_roots: _containers.RepeatedScalarFieldContainer[str]
    attempt: int
    namespace: str
    name: str
    priority: int
    features: _containers.ScalarMap[str, float]
    segment: Segment
    def __init__(self, id: _Optional[str] = ..., status: _Optional[_Union[JobStatus, str]] = ..., scoring: _Optional[_Union[ScoringParams, _Mapping]] = ..., partial_results: _Optional[_Iterable[float]] = ..., assigned_node: _Optional[str] = ..., error: _Optional[str] = ..., created_at: _Optional[int] = ..., updated_at: _Optional[int] = ..., final_score: _Optional[float] = ..., scoring_roots: _Optional[_Iterable[str]] = ..., attempt: _Optional[int] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., priority: _Optional[int] = ..., features: _Optional[_Mapping[str, float]] = ..., segment: _Optional[_Union[Segment, _Mapping]] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("index", "of")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    index: int
    of: int
    def __init__(self, index: _Optional[int] = ..., of: _Optional[int] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("first", "count", "total")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    first: int
    count: int
    total: int
    def __init__(self, first: _Optional[int] = ..., count: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class NodeCapability(_message.Message):
    __slots__ = ("gpu_vendor", "backends", "concurrency", "device")
    GPU_VENDOR_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    gpu_vendor: str
    backends: _containers.RepeatedScalarFieldContainer[str]
    concurrency: int
    device: str
    def __init__(self, gpu_vendor: _Optional[str] = ..., backends: _Optional[_Iterable[str]] = ..., concurrency: _Optional[int] = ..., device: _Optional[str] = ...) -> None: ...

class SubmitJobRequest(_message.Message):
    __slots__ = ("scoring", "idempotency_key", "namespace", "priority", "segments")
    SCORING_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    scoring: ScoringParams
    idempotency_key: str
    namespace: str
    priority: int
    segments: int
    def __init__(self, scoring: _Optional[_Union[ScoringParams, _Mapping]] = ..., idempotency_key: _Optional[str] = ..., namespace: _Optional[str] = ..., priority: _Optional[int] = ..., segments: _Optional[int] = ...) -> None: ...

class SubmitJobResponse(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class CancelJobResponse(_message.Message):
    __slots__ = ("ok", "message")
    OK_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    message: str
    def __init__(self, ok: _Optional[bool] = ..., message: _Optional[str] = ...) -> None: ...

class StreamJobsRequest(_message.Message):
    __slots__ = ("status_filter", "watch")
    STATUS_FILTER_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    status_filter: _containers.RepeatedScalarFieldContainer[JobStatus]
    watch: bool
    def __init__(self, status_filter: _Optional[_Iterable[_Union[JobStatus, str]]] = ..., watch: _Optional[bool] = ...) -> None: ...

class RegisterNodeRequest(_message.Message):
    __slots__ = ("name", "capability", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    capability: NodeCapability
    labels: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., capability: _Optional[_Union[NodeCapability, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class RegisterNodeResponse(_message.Message):
    __slots__ = ("node_id", "session_token")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    session_token: str
    def __init__(self, node_id: _Optional[str] = ..., session_token: _Optional[str] = ...) -> None: ...

class JobProgress(_message.Message):
    __slots__ = ("job_id", "attempt", "percent")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    attempt: int
    percent: int
    def __init__(self, job_id: _Optional[str] = ..., attempt: _Optional[int] = ..., percent: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("node_id", "session_token", "jobs_running", "running_job_ids", "progress", "wait_seconds", "draining")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    JOBS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    session_token: str
    jobs_running: int
    running_job_ids: _containers.RepeatedScalarFieldContainer[str]
    progress: _containers.RepeatedCompositeFieldContainer[JobProgress]
    wait_seconds: float
    draining: bool
    def __init__(self, node_id: _Optional[str] = ..., session_token: _Optional[str] = ..., jobs_running: _Optional[int] = ..., running_job_ids: _Optional[_Iterable[str]] = ..., progress: _Optional[_Iterable[_Union[JobProgress, _Mapping]]] = ..., wait_seconds: _Optional[float] = ..., draining: _Optional[bool] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("ok", "cancel_job_ids")
    OK_FIELD_NUMBER: _ClassVar[int]
    CANCEL_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    cancel_job_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ok: _Optional[bool] = ..., cancel_job_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class PullWorkRequest(_message.Message):
    __slots__ = ("node_id", "session_token", "capability", "wait_seconds")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    session_token: str
    capability: NodeCapability
    wait_seconds: float
    def __init__(self, node_id: _Optional[str] = ..., session_token: _Optional[str] = ..., capability: _Optional[_Union[NodeCapability, _Mapping]] = ..., wait_seconds: _Optional[float] = ...) -> None: ...

class Trainer(_message.Message):
    __slots__ = ("name", "address", "features", "token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    features: _containers.RepeatedScalarFieldContainer[str]
    token: str
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ..., token: _Optional[str] = ...) -> None: ...

class PullWorkResponse(_message.Message):
    __slots__ = ("job", "trainers")
    JOB_FIELD_NUMBER: _ClassVar[int]
    TRAINERS_FIELD_NUMBER: _ClassVar[int]
    job: Job
    trainers: _containers.RepeatedCompositeFieldContainer[Trainer]
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., trainers: _Optional[_Iterable[_Union[Trainer, _Mapping]]] = ...) -> None: ...

class ReportResultRequest(_message.Message):
    __slots__ = ("node_id", "session_token", "job_id", "final", "score", "features", "partial_scores", "error", "attempt", "retryable", "released", "part", "reused")
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_SCORES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    session_token: str
    job_id: str
    final: bool
    score: float
    features: _containers.ScalarMap[str, float]
    partial_scores: _containers.RepeatedScalarFieldContainer[float]
    error: str
    attempt: int
    retryable: bool
    released: bool
    part: Part
    reused: bool
    def __init__(self, node_id: _Optional[str] = ..., session_token: _Optional[str] = ..., job_id: _Optional[str] = ..., final: _Optional[bool] = ..., score: _Optional[float] = ..., features: _Optional[_Mapping[str, float]] = ..., partial_scores: _Optional[_Iterable[float]] = ..., error: _Optional[str] = ..., attempt: _Optional[int] = ..., retryable: _Optional[bool] = ..., released: _Optional[bool] = ..., part: _Optional[_Union[Part, _Mapping]] = ..., reused: _Optional[bool] = ...) -> None: ...

class ReportResultResponse(_message.Message):
    __slots__ = ("ok",)
    OK_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    def __init__(self, ok: _Optional[bool] = ...) -> None: ...
