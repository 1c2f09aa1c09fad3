"""One pair of clips, and the ffmpeg that judges them, for all tests of scoring."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.operators.vmafx import clips
from trimtab.operators.vmafx import tools
from trimtab.operators.vmafx.tools import Ffmpeg


@pytest.fixture(scope="session")
def ffmpeg() -> Ffmpeg:
    return asyncio.run(tools.find())


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clips.picture(tmp_path_factory.mktemp("clips") / "reference.mp4")


@pytest.fixture(scope="session")
def distorted(reference: Path) -> Path:
    return clips.picture(reference.with_name("distorted.mp4"), crf=40)
