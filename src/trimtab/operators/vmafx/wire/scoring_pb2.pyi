from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PixelFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PIXEL_FORMAT_UNSPECIFIED: _ClassVar[PixelFormat]
    PIXEL_FORMAT_YUV420P: _ClassVar[PixelFormat]
    PIXEL_FORMAT_YUV422P: _ClassVar[PixelFormat]
    PIXEL_FORMAT_YUV444P: _ClassVar[PixelFormat]
    PIXEL_FORMAT_YUV420P10LE: _ClassVar[PixelFormat]
    PIXEL_FORMAT_YUV422P10LE: _ClassVar[PixelFormat]
    PIXEL_FORMAT_YUV444P10LE: _ClassVar[PixelFormat]
PIXEL_FORMAT_UNSPECIFIED: PixelFormat
PIXEL_FORMAT_YUV420P: PixelFormat
PIXEL_FORMAT_YUV422P: PixelFormat
PIXEL_FORMAT_YUV444P: PixelFormat
PIXEL_FORMAT_YUV420P10LE: PixelFormat
PIXEL_FORMAT_YUV422P10LE: PixelFormat
PIXEL_FORMAT_YUV444P10LE: PixelFormat

class ScoreRequest(_message.Message):
    __slots__ = ("reference", "distorted", "model")
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    DISTORTED_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    reference: str
    distorted: str
    model: str
    def __init__(self, reference: _Optional[str] = ..., distorted: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("score", "features")
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    score: float
    features: _containers.ScalarMap[str, float]
    def __init__(self, score: _Optional[float] = ..., features: _Optional[_Mapping[str, float]] = ...) -> None: ...

class StreamConfig(_message.Message):
    __slots__ = ("width", "height", "pixel_format", "model", "frame_count_hint")
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    PIXEL_FORMAT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    FRAME_COUNT_HINT_FIELD_NUMBER: _ClassVar[int]
    width: int
    height: int
    pixel_format: PixelFormat
    model: str
    frame_count_hint: int
    def __init__(self, width: _Optional[int] = ..., height: _Optional[int] = ..., pixel_format: _Optional[_Union[PixelFormat, str]] = ..., model: _Optional[str] = ..., frame_count_hint: _Optional[int] = ...) -> None: ...

class FramePair(_message.Message):
    __slots__ = ("frame_index", "raw_reference", "raw_distorted")
    FRAME_INDEX_FIELD_NUMBER: _ClassVar[int]
    RAW_REFERENCE_FIELD_NUMBER: _ClassVar[int]
    RAW_DISTORTED_FIELD_NUMBER: _ClassVar[int]
    frame_index: int
    raw_reference: bytes
    raw_distorted: bytes
    def __init__(self, frame_index: _Optional[int] = ..., raw_reference: _Optional[bytes] = ..., raw_distorted: _Optional[bytes] = ...) -> None: ...

class ScoreStreamRequest(_message.Message):
    __slots__ = ("config", "frame_pair")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    FRAME_PAIR_FIELD_NUMBER: _ClassVar[int]
    config: StreamConfig
    frame_pair: FramePair
    def __init__(self, config: _Optional[_Union[StreamConfig, _Mapping]] = ..., frame_pair: _Optional[_Union[FramePair, _Mapping]] = ...) -> None: ...

class FrameScore(_message.Message):
    __slots__ = ("frame_index", "score", "features")
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    FRAME_INDEX_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    frame_index: int
    score: float
    features: _containers.ScalarMap[str, float]
    def __init__(self, frame_index: _Optional[int] = ..., score: _Optional[float] = ..., features: _Optional[_Mapping[str, float]] = ...) -> None: ...

class AggregateScore(_message.Message):
    __slots__ = ("frames_processed", "score", "features", "elapsed_ms")
    class FeaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    FRAMES_PROCESSED_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_MS_FIELD_NUMBER: _ClassVar[int]
    frames_processed: int
    score: float
    features: _containers.ScalarMap[str, float]
    elapsed_ms: int
    def __init__(self, frames_processed: _Optional[int] = ..., score: _Optional[float] = ..., features: _Optional[_Mapping[str, float]] = ..., elapsed_ms: _Optional[int] = ...) -> None: ...

class ScoreStreamResponse(_message.Message):
    __slots__ = ("frame_score", "aggregate")
    FRAME_SCORE_FIELD_NUMBER: _ClassVar[int]
    AGGREGATE_FIELD_NUMBER: _ClassVar[int]
    frame_score: FrameScore
    aggregate: AggregateScore
    def __init__(self, frame_score: _Optional[_Union[FrameScore, _Mapping]] = ..., aggregate: _Optional[_Union[AggregateScore, _Mapping]] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HealthResponse(_message.Message):
    __slots__ = ("ok", "message")
    OK_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    message: str
    def __init__(self, ok: _Optional[bool] = ..., message: _Optional[str] = ...) -> None: ...
