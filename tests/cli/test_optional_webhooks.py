"""Webhooks that need not be: served where somebody says how, and else left out."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from trimtab import Operator
from trimtab.cli import run

pytestmark = pytest.mark.usefixtures("modules")

SOURCE = """
from trimtab import Operator, Resource, Review, Spec

class Post(Resource, group="optional.example.com", version="v1"):
    spec: Spec

app = Operator("posts", optional_webhooks={optional})

@app.validates(Post)
def check(post: Post, review: Review) -> None:
    pass
"""


def operator(folder: Path, *flags: str, optional: bool) -> Operator:
    """The operator as ``trimtab run`` would run it."""
    file = folder / f"posts_{optional}.py"
    file.write_text(SOURCE.format(optional=optional))
    parser = argparse.ArgumentParser()
    run.add(parser.add_subparsers())
    (found,) = run._operators(parser.parse_args(["run", str(file), *flags]))
    return found


def test_optional_webhooks_are_left_out_unless_somebody_says_how_they_are_reached(
    tmp_path: Path,
) -> None:
    left = operator(tmp_path, optional=True)
    assert not left.webhooks
    for way in ("--webhook-service=posts", "--webhook-url=https://here:1"):
        served = operator(tmp_path, way, optional=True)
        assert served.webhooks
    assert operator(tmp_path, optional=False).webhooks
