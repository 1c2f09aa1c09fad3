"""Laws of base models: a fit is a fit, and what knows nothing says so."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.operators.vmafx.training.school import NAMES, rows, samples
from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training import models
from trimtab.operators.vmafx.training.base import fitted, main, untrained
from trimtab.operators.vmafx.training.judging import figures
from trimtab.operators.vmafx.training.network import Affine


def test_a_fit_tells_scores_that_it_never_saw() -> None:
    model, _ = fitted(samples(400, seed=1), NAMES, random=Random(1))
    features, truth = rows(samples(200, seed=2))
    found = figures(model.network.scores(model.vector, features), truth)
    assert found.plcc > 0.95
    assert found.srocc > 0.95
    assert model.properties["vmafx.origin"] == "fitted"


def test_a_feature_that_never_changes_is_no_harm() -> None:
    still = [
        msgspec.structs.replace(each, features=(*each.features[:5], 7.0))
        for each in samples(100, seed=1)
    ]
    model, found = fitted(still, NAMES, random=Random(1), hidden=8)
    assert found.plcc > 0.8
    scaling = model.network.parts[0]
    assert isinstance(scaling, Affine)
    assert scaling.scale.max() < 100


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(ConfigError, match="too few"):
        fitted(samples(3, seed=1), NAMES, random=Random(1))
    same = [
        msgspec.structs.replace(each, true_score=5.0) for each in samples(50, seed=1)
    ]
    with pytest.raises(ConfigError, match="the same"):
        fitted(same, NAMES, random=Random(1))
    for wrong in (NAMES[:5], (*NAMES[:5], NAMES[0]), (*NAMES[:5], "a,b")):
        with pytest.raises(ConfigError):
            fitted(samples(50, seed=1), wrong, random=Random(1))


def test_the_command_makes_what_was_asked_for_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = tmp_path / "seed.ndjson"
    lines = [msgspec.json.encode(each) for each in samples(60, seed=1)]
    seed.write_bytes(b"\n".join(lines))
    names = f"--features={','.join(NAMES)}"
    out = tmp_path / "base.onnx"
    assert main([str(out), names, f"--from={seed}", "--hidden=8"]) == 0
    assert "PLCC" in capsys.readouterr().out
    assert models.load(out).names == NAMES
    assert models.load(out).properties["vmafx.origin"] == "fitted"
    assert main([str(out), names, "--untrained", "--hidden=8"]) == 0
    assert "knows nothing" in capsys.readouterr().out
    assert models.load(out).properties["vmafx.origin"] == "untrained"
    with pytest.raises(SystemExit):
        main([str(out), names])
    seed.write_bytes(lines[0] + b"\nhello\n")
    assert main([str(out), names, f"--from={seed}"]) == 1
    assert "line 2" in capsys.readouterr().err


def test_the_same_seed_is_the_same_model() -> None:
    made = [models.write(untrained(NAMES, random=Random(seed))) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
