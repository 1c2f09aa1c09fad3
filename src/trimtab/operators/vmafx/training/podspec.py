"""Pod specs: the pod of a trainer and its Service, made of values and nothing else.

The same training makes the same pod with the same hash. It may nothing that a
``restricted`` namespace forbids, unless its training names a folder of the machine.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from trimtab.api import Duration, Metadata, convert, fit
from trimtab.api.codec import encode
from trimtab.client import ConfigError
from trimtab.kinds import Pod, PodSpec, Service, ServicePort, ServiceSpec
from trimtab.operators.vmafx.training.kinds import PORT, VmafxModelTraining
from trimtab.operators.vmafx.training.mirror import RHYTHM

Plain = dict[str, Any]

PROGRAM: Final = ("python", "-m", "trimtab.operators.vmafx.training")
SPEC_HASH: Final = "vmafx.dev/spec-hash"
TRAINING_LABEL: Final = "vmafx.dev/training"
STATE: Final = "/var/lib/vmafx"
"""Where a trainer's own folder is, unless it is a folder of the machine."""
BASE: Final = "/var/lib/vmafx-base"
DIGEST: Final = "vmafx.dev/token-digest"
"""The annotation that says which token its callers show, and is a file in the pod."""
TOKEN: Final = "/var/lib/vmafx-token"
_TOKEN_FILE: Final = "digest"
_IMAGE: Final = "VMAFX_TRAINER_IMAGE"
_USER: Final = "VMAFX_TRAINER_USER"
_ANYBODY: Final = "any"
_RHYTHM: Final = "VMAFX_TRAINER_RHYTHM"
_RESOURCES: Final[Plain] = {
    "requests": {"cpu": "100m", "memory": "192Mi"},
    "limits": {"memory": "1Gi"},
}


class TrainerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What all trainers have in common."""

    image: str = "trimtab.dev/trainer"
    # Whom it runs as; None leaves that to the image, which a laptop's root needs.
    user: int | None = 65532
    # Seconds between two questions to a trainer.
    rhythm: float = RHYTHM


def settings_of(environment: Mapping[str, str] = os.environ) -> TrainerSettings:
    """What the environment says of trainers. Errors: :class:`ConfigError`."""
    plain = TrainerSettings()
    user = environment.get(_USER, "") or str(plain.user)
    if user != _ANYBODY and not (user.isdecimal() and int(user)):
        raise ConfigError(
            f"{_USER} is the number of a user other than root, or {_ANYBODY}, and not "
            f"{user}."
        )
    return TrainerSettings(
        image=environment.get(_IMAGE, "") or plain.image,
        user=None if user == _ANYBODY else int(user),
        rhythm=_rhythm(environment.get(_RHYTHM, "")),
    )


def _rhythm(text: str) -> float:
    try:
        seconds = Duration(text).seconds if text else RHYTHM
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise ConfigError(f"{_RHYTHM} is a duration such as 1m, and not {text}.")
    return seconds


def name_of(training: VmafxModelTraining) -> str:
    """What its pod and its Service are called."""
    return fit(f"vmafx-trainer-{training.metadata.name}")


def problem(training: VmafxModelTraining) -> str:
    """Why no trainer can be started, in a sentence; empty if one can."""
    spec = training.spec
    try:
        if Duration(spec.checkpoint.interval).seconds <= 0:
            raise ValueError
    except ValueError:
        return (
            f"spec.checkpoint.interval: {spec.checkpoint.interval!r} is no duration "
            "such as 10m."
        )
    if spec.storage.claim and spec.storage.hostPath:
        return "spec.storage: name a claim or a hostPath, and not both."
    if not _file(training) and _config_map(spec.baseModel) is None:
        return (
            f"spec.baseModel: {spec.baseModel} is nothing that a trainer can read; "
            "name configmap://NAME/KEY, or a file as file:///models/base.onnx."
        )
    return ""


def pod(training: VmafxModelTraining, settings: TrainerSettings, *, digest: str) -> Pod:
    """The pod of a training; ``problem`` found nothing in it.

    ``digest`` is that of its token, and no part of the hash: it changes in place.
    """
    spec = convert(PodSpec, _spec(training, settings))
    mark = hashlib.sha256(encode(spec)).hexdigest()[:32]
    return Pod(
        metadata=Metadata(
            name=name_of(training),
            namespace=training.metadata.namespace,
            labels=_labels(training),
            annotations={SPEC_HASH: mark, DIGEST: digest},
        ),
        spec=spec,
    )


def service(training: VmafxModelTraining) -> Service:
    """The name under which a trainer is reached."""
    port = ServicePort(name="http", port=PORT, targetPort=PORT)
    return Service(
        metadata=Metadata(
            name=name_of(training),
            namespace=training.metadata.namespace,
            labels=_labels(training),
        ),
        spec=ServiceSpec(selector=_labels(training), ports=(port,)),
    )


def _labels(training: VmafxModelTraining) -> dict[str, str]:
    return {TRAINING_LABEL: fit(training.metadata.name)}


def _spec(training: VmafxModelTraining, settings: TrainerSettings) -> Plain:
    user = settings.user
    security: Plain = {"seccompProfile": {"type": "RuntimeDefault"}}
    if user is not None:
        whom = {"runAsUser": user, "runAsGroup": user, "fsGroup": user}
        security |= {"runAsNonRoot": True, **whom}
    return {
        "restartPolicy": "Always",
        # It writes what it knows and goes; what was acknowledged is on the disk.
        "terminationGracePeriodSeconds": 15,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security,
        "containers": [_container(training, settings)],
        "volumes": _volumes(training),
    }


def _container(training: VmafxModelTraining, settings: TrainerSettings) -> Plain:
    asked = {"path": "/status", "port": PORT}
    return {
        "name": "trainer",
        "image": training.spec.image or settings.image,
        "command": [*PROGRAM],
        "args": _arguments(training),
        "env": _environment(training),
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": _RESOURCES,
        "readinessProbe": {"httpGet": asked, "periodSeconds": 2, "timeoutSeconds": 5},
        "livenessProbe": {"httpGet": asked, "periodSeconds": 30, "timeoutSeconds": 10},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Why it ended is what it said last; people read it in the training's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(training),
    }


def _arguments(training: VmafxModelTraining) -> list[str]:
    state = _state(training)
    base = _file(training)
    if base and not base.startswith("/"):
        base = f"{state}/{base}"
    if found := _config_map(training.spec.baseModel):
        base = f"{BASE}/{found[1]}"
    made = ["--directory", state, "--base", base, "--address", f"$(POD_IP):{PORT}"]
    shown = ["--token-file", f"{TOKEN}/{_TOKEN_FILE}"]
    return [*made, *shown, *_output(training)]


def _output(training: VmafxModelTraining) -> list[str]:
    """Where checkpoints go: a folder, else beside what the trainer knows."""
    place = training.spec.outputRegistry
    local = place.startswith(("/", "file:///", "oci:///"))
    return ["--output", place] if local else []


def is_pushed_by_people(training: VmafxModelTraining) -> bool:
    """Whether its models are to go where no trainer brings them."""
    return not _output(training)


def _environment(training: VmafxModelTraining) -> list[Plain]:
    checkpoint, config = training.spec.checkpoint, training.spec.algorithmConfig
    values = {
        "CKPT_INTERVAL_S": Duration(checkpoint.interval).seconds,
        "MIN_SAMPLES_CKPT": checkpoint.minSamples,
        "LR": config.learningRate,
        "EMA_DECAY": config.emaDecay,
        "BATCH_SIZE": config.batchSize,
        "REPLAY_CAPACITY": config.replayBufferSize,
        "REPLAY_MIX": config.replayMixRatio,
        "PASSES": config.passes,
    }
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return [
        {"name": "POD_IP", "valueFrom": address},
        *(
            {"name": f"VMAFX_SIDECAR_{name}", "value": f"{value:.12g}"}
            for name, value in values.items()
            if value is not None
        ),
    ]


def _state(training: VmafxModelTraining) -> str:
    # A folder of the machine is the same inside: its models are found by their names.
    return (training.spec.storage.hostPath or STATE).rstrip("/") or STATE


def _volumes(training: VmafxModelTraining) -> list[Plain]:
    storage = training.spec.storage
    known = {"fieldRef": {"fieldPath": f"metadata.annotations['{DIGEST}']"}}
    items = [{"path": _TOKEN_FILE, **known}]
    token: Plain = {"name": "token", "downwardAPI": {"items": items}}
    state: Plain = {"name": "state", "emptyDir": {}}
    if storage.claim:
        state = {"name": "state", "persistentVolumeClaim": {"claimName": storage.claim}}
    if storage.hostPath:
        host = {"path": storage.hostPath, "type": "DirectoryOrCreate"}
        state = {"name": "state", "hostPath": host}
    if found := _config_map(training.spec.baseModel):
        return [state, token, {"name": "base", "configMap": {"name": found[0]}}]
    return [state, token]


def _mounts(training: VmafxModelTraining) -> list[Plain]:
    mounts: list[Plain] = [
        {"name": "state", "mountPath": _state(training)},
        {"name": "token", "mountPath": TOKEN, "readOnly": True},
    ]
    if _config_map(training.spec.baseModel):
        mounts.append({"name": "base", "mountPath": BASE, "readOnly": True})
    return mounts


def _config_map(base: str) -> tuple[str, str] | None:
    """The ConfigMap that a base model is in, and its key."""
    parts = urlsplit(base)
    key = parts.path.removeprefix("/")
    if parts.scheme != "configmap" or not parts.netloc or not key or "/" in key:
        return None
    return parts.netloc, key


def _file(training: VmafxModelTraining) -> str:
    """The file of a base model, if it is one; a relative one is in the storage."""
    base = training.spec.baseModel
    if base.startswith("file:///"):
        return base.removeprefix("file://")
    return base if "://" not in base and base.endswith(".onnx") else ""
