"""The settings of a trainer: arguments, and the environment for what is not given."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training.checkpoints import KEEP
from trimtab.operators.vmafx.training.learning import Hyper
from trimtab.operators.vmafx.training.trainer import TrainerOptions

PROGRAM: Final = "python -m trimtab.operators.vmafx.training"
_PREFIX: Final = "VMAFX_SIDECAR_"
_BASE: Final = "VMAFX_BASE_MODEL_PATH"
_FOLDER: Final = "/mnt/vmafx-models/online"
_ADDRESS: Final = "127.0.0.1:9091"
_FOLDER_OF_TOKEN: Final = "TRIMTAB_VOLUME_TOKEN"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a trainer is started with."""

    directory: Path
    base: Path
    # Where models go: a folder, or oci:DIR.
    output: str
    socket: Path | None
    # Where the token is that callers show; None lets everybody in, on loopback only.
    token_file: Path | None
    host: str
    port: int
    # How many features the base model is to have; None takes any number.
    features: int | None
    keep: int
    options: TrainerOptions


def settings_of(
    arguments: Sequence[str] | None, environment: Mapping[str, str]
) -> Settings:
    """What was asked for.

    Errors: :class:`ConfigError` for what makes no sense; ``SystemExit`` for arguments
    that cannot be read, as argparse does it.
    """
    found = _parser(environment).parse_args(arguments)
    if found.base is None:
        raise ConfigError(f"No model is named to begin from: use --base, or {_BASE}.")
    host, _, port = found.address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{found.address} is no address: write HOST:PORT.")
    if found.token_file is None and not _is_loopback(host.strip("[]")):
        raise ConfigError(
            f"Others than this machine's users reach {found.address}: name the file of "
            "a token that they have to show with --token-file, or listen on 127.0.0.1."
        )
    if found.interval < 0 or found.samples < 1 or found.keep < 1:
        raise ConfigError("--interval, --samples and --keep count something.")
    names = msgspec.structs.fields(Hyper)
    hyper = {
        each.name: value
        for each in names
        if (value := getattr(found, each.name, None)) is not None
    }
    return Settings(
        directory=found.directory,
        base=found.base,
        output=found.output or str(found.directory),
        socket=found.socket,
        token_file=_token_file(found.token_file, environment),
        host=host.strip("[]"),
        port=int(port),
        features=found.features,
        keep=found.keep,
        options=TrainerOptions(
            interval=found.interval, samples=found.samples, hyper=Hyper(**hyper)
        ),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token_file(named: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The file, also where pods have no mounts of their own and a folder is named."""
    folder = environment.get(_FOLDER_OF_TOKEN, "")
    if named is None or named.exists() or not folder:
        return named
    return Path(folder) / named.name


def _whole(text: str) -> int:
    """A whole number, also as 1e+06."""
    number = float(text)
    if number != int(number):
        raise ValueError
    return int(number)


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    plain, hyper = TrainerOptions(), Hyper()
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Fine-tune a model with samples as they come, and keep what is "
        "better than what was there.",
    )

    def add(name: str, variable: str, type: Any, default: object, about: str) -> None:
        variable = variable if variable.startswith("VMAFX_") else _PREFIX + variable
        given = environment.get(variable, "") or default
        text = (
            f"{about} ({variable}; {default})" if default else f"{about} ({variable})"
        )
        made.add_argument(f"--{name}", type=type, default=given, help=text)

    add("directory", "CHECKPOINT_DIR", Path, Path(_FOLDER), "what it knows is here")
    add("base", _BASE, Path, None, "the model to begin from")
    add("output", "OUTPUT", str, None, "where models go: a folder, or oci:DIR")
    add("socket", "SOCKET", Path, None, "take samples at this Unix socket as well")
    add("token-file", "TOKEN_FILE", Path, None, "who changes something shows this")
    add("address", "ADDRESS", str, _ADDRESS, "where it is asked")
    add("interval", "CKPT_INTERVAL_S", float, plain.interval, "seconds between models")
    add("samples", "MIN_SAMPLES_CKPT", _whole, plain.samples, "samples between models")
    add("keep", "KEEP", _whole, KEEP, "models that are kept")
    add("features", "N_FEATURES", _whole, None, "how many features the base must have")
    add("replay", "REPLAY_CAPACITY", _whole, hyper.replay, "samples to remember")
    add("batch", "BATCH_SIZE", _whole, hyper.batch, "samples of a step")
    add("mix", "REPLAY_MIX", float, hyper.mix, "share of them that is remembered")
    add("rate", "LR", float, hyper.rate, "learning rate")
    add("ema", "EMA_DECAY", float, hyper.ema, "decay of the average")
    add("passes", "PASSES", _whole, hyper.passes, "steps for each half batch")
    return made
