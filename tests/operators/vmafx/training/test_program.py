"""Laws of the trainer program: killed at any time, it goes on where it was."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import onnx
import pytest
from onnx import TensorProto, helper

from tests.operators.vmafx.training.programs import Program, judged, program
from tests.operators.vmafx.training.school import base, poisoned, samples
from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training.base import save
from trimtab.operators.vmafx.training.learning import Hyper
from trimtab.operators.vmafx.training.program import main
from trimtab.operators.vmafx.training.settings import settings_of


def sums(folder: Path) -> dict[str, str]:
    """The models that are there; each is what its sum says."""
    found = {}
    for path in folder.glob("model_v*.onnx"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        line = path.with_name(f"{path.name}.sha256").read_text()
        assert line == f"{digest}  {path.name}\n"
        found[path.name] = digest
    return found


async def killed(made: Program, *, seed: int, after: int) -> int:
    """Send a thousand samples and kill it in the middle; how many it acknowledged."""
    taken = await made.send(samples(1000, seed=seed), until=after)
    await made.kill()
    return taken


async def test_kill_9_loses_no_acknowledged_sample_and_no_version(
    tmp_path: Path,
) -> None:
    async with program(tmp_path) as made:
        before = 0
        while not sums(tmp_path):  # once it has learned enough, it keeps a model
            assert before < 4000
            before += await made.send(samples(500, seed=before), until=500)
        taken = before + await killed(made, seed=2, after=700)
        assert taken >= before + 700
    first = sums(tmp_path)
    async with program(tmp_path) as made:
        status = await made.ask("/status")
        assert taken <= status["current_samples"] <= before + 1000
        assert status["model_version"] == max(first)[6:13]
        # However they are grouped, the last judgement sees nothing but poison.
        assert (await made.send(poisoned(1000, seed=3), until=1000)) == 1000
        status = await judged(made, samples=taken + 1000)
        assert status["gate"]["outcome"] == "failed"
        assert sums(tmp_path).items() >= first.items()
        assert status["model_version"] == max(sums(tmp_path))[6:13]
        await made.stop()
    assert not (tmp_path / "socket").exists()


@pytest.mark.long
async def test_kill_9_again_and_again(tmp_path: Path) -> None:
    random, taken, sent = Random(1), 0, 0
    known: dict[str, str] = {}
    for seed in range(30):
        async with program(tmp_path) as made:
            status = await made.ask("/status")
            assert taken <= status["current_samples"] <= sent
            found = sums(tmp_path)
            assert found.items() >= known.items()
            # Numbers have no holes: none was lost.
            names = [f"model_v{each:06d}.onnx" for each in range(1, len(found) + 1)]
            assert sorted(found) == names
            known = found
            before = status["current_samples"]
            after = random.randrange(1, 900)
            taken = before + await killed(made, seed=seed, after=after)
            sent = before + 1000
    assert len(known) > 3


def run(*arguments: str) -> int:
    return main(arguments, now=lambda: datetime.now(UTC))


def test_another_architecture_is_told_and_nothing_is_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 1])
        for name in ("x", "y")
    ]
    node = helper.make_node("Softplus", ["x"], ["y"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, ir_version=8), tmp_path / "other.onnx")
    folder = tmp_path / "out"
    base_path = str(tmp_path / "other.onnx")
    assert run("--directory", str(folder), "--base", base_path) == 2
    assert "it has a Softplus" in capfd.readouterr().err
    assert not folder.exists()


def test_what_is_wrong_is_one_sentence_and_the_code_2(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "base.onnx"
    save(base(), good)
    place = ("--directory", str(tmp_path / "d"))
    base_of = ("--base", str(good))
    elsewhere = (*base_of, "--address", "192.0.2.1:1")
    token = tmp_path / "token"
    token.write_text("a token")
    for arguments, why in (
        ((), "No model is named"),
        (("--base", str(tmp_path / "none")), "cannot be read: no such file"),
        (("--base", str(good), "--features", "80"), "takes 6 features and not 80"),
        (("--base", str(good), "--address", "nowhere"), "write HOST:PORT"),
        (("--base", str(good), "--ema", "1"), "decay of the average"),
        (("--base", str(good), "--output", "s3://b/c"), "not on this machine"),
        (elsewhere, "with --token-file, or listen on"),
        ((*base_of, "--address", "0.0.0.0:0"), "with --token-file, or listen on"),
        ((*base_of, "--token-file", str(tmp_path / "none")), "has no token"),
        ((*elsewhere, "--token-file", str(token)), "on 192.0.2.1:1: "),
    ):
        assert run(*place, *arguments) == 2
        said = capfd.readouterr().err.strip().splitlines()[-1]
        assert said.startswith("trainer: ")
        assert why in said
        assert said.endswith(".")


def test_settings_come_from_the_environment_of_the_sidecar() -> None:
    names = {
        "CHECKPOINT_DIR": "/models",
        "SOCKET": "/tmp/s",
        "REPLAY_CAPACITY": "1e+05",
        "BATCH_SIZE": "64",
        "REPLAY_MIX": "0.25",
        "LR": "0.001",
        "EMA_DECAY": "0.99",
        "CKPT_INTERVAL_S": "60",
        "MIN_SAMPLES_CKPT": "50",
        "N_FEATURES": "6",
    }
    environment = {f"VMAFX_SIDECAR_{name}": value for name, value in names.items()}
    found = settings_of([], {**environment, "VMAFX_BASE_MODEL_PATH": "/b.onnx"})
    assert (found.directory, found.base) == (Path("/models"), Path("/b.onnx"))
    assert (found.socket, found.features) == (Path("/tmp/s"), 6)
    assert found.output == "/models"
    assert (found.options.interval, found.options.samples) == (60.0, 50)
    assert found.options.hyper == Hyper(
        replay=100_000, batch=64, mix=0.25, rate=0.001, ema=0.99
    )
    plain = settings_of(["--base", "b"], {})
    assert str(plain.directory) == "/mnt/vmafx-models/online"
    assert (plain.host, plain.port, plain.socket) == ("127.0.0.1", 9091, None)
    assert (plain.options.interval, plain.options.samples) == (600.0, 1000)
    assert plain.options.hyper == Hyper()
    with pytest.raises(ConfigError):
        settings_of(["--base", "b", "--samples", "0"], {})
    with pytest.raises(SystemExit):
        settings_of(["--base", "b", "--samples", "1.5"], {})


def test_the_operator_needs_none_of_what_a_trainer_computes_with() -> None:
    text = (
        "import sys, trimtab.operators.vmafx.app, trimtab.operators.vmafx.training\n"
        "print({'numpy', 'onnx', 'onnxruntime'} & set(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "set()"
