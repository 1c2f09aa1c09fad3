"""Laws of images: a name means a command of this machine, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.api.kinds import Container
from trimtab.kubelet.images import (
    Image,
    ImageProblem,
    Images,
    Malformed,
    Unknown,
    is_program,
    table,
    untagged,
)


def of(image: str, *command: str, args: tuple[str, ...] = ()) -> Container:
    return Container(name="main", image=image, command=command, args=args)


def test_a_container_runs_what_the_table_says_or_what_it_says_itself() -> None:
    images = Images({"web": Image(command=["serve", "--now"]), "a:1": Image()})
    assert images.find(of("web:2", args=("x",)))[1] == ["serve", "--now", "x"]
    assert images.find(of("web", "other"))[1] == ["other"]
    assert images.find(of("nobody", "sh", "-c", "true"))[1] == ["sh", "-c", "true"]
    assert images.find(of("trimtab.dev/sh:1", args=("-c",)))[1] == ["sh", "-c"]


def test_a_program_of_this_package_needs_no_entry() -> None:
    image, command = Images().find(of("trimtab.dev/runner:2", args=("--warm",)))
    assert command[1:] == ["-m", "trimtab.operators.sessions.runner", "--warm"]
    assert is_program(command[0], image.path)
    own = Images({"trimtab.dev/runner": Image(command=["mine"])})
    assert own.find(of("trimtab.dev/runner:2"))[1] == ["mine"]


def test_a_name_without_a_command_is_unknown() -> None:
    for each in (of("nobody/knows:1"), of("x", "no-such-program-here")):
        with pytest.raises(Unknown):
            Images().find(each)


def test_a_name_is_one_that_an_image_could_have() -> None:
    digest = f"sha256:{'ab' * 32}"
    good = (
        "web",
        "web:1",
        f"a/b_c/d__e@{digest}",
        "host:5000/a-b/c:v1.2",
        "localhost/x",
    )
    for name in (*good, "Host/path", "registry.example.com/web"):
        assert Images().find(of(name, "sh"))[1] == ["sh"]
    for name in (
        "",
        "web:",
        "a//b",
        "-web",
        "web:a b",
        "web@sha256:12",
        "/web",
        "a..b",
    ):
        with pytest.raises(Malformed, match=r"invalid reference format$"):
            Images().find(of(name, "sh"))
    with pytest.raises(Malformed, match=r"repository name \(Web\) must be lowercase"):
        Images().find(of("Web:1", "sh"))
    assert Images({"My Own": Image(command=["ls"])}).find(of("My Own"))[1] == ["ls"]


def test_a_tag_is_not_a_port() -> None:
    cases = {
        "web": "web",
        "web:1": "web",
        "host:5000/web": "host:5000/web",
        "host:5000/web:1": "host:5000/web",
        "web@sha256:ab": "web",
        "web:1@sha256:ab": "web",
    }
    assert {name: untagged(name) for name in cases} == cases


def test_a_table_is_read_from_pairs_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    file = tmp_path / "images"
    file.write_text(f"# mine\n\nweb = serve 'a b'\nfolder={tmp_path}\nboth=file\n")
    found = table(["both=pair -x"], file=file)
    assert list(found["web"].command) == ["serve", "a b"]
    assert found["folder"].folder == str(tmp_path)
    assert found["folder"].path.startswith(f"{tmp_path}:{tmp_path}/bin:")
    assert list(found["both"].command) == ["pair", "-x"]
    for wrong in ("web", "=serve", "web=", "web='"):
        with pytest.raises(ImageProblem, match="write NAME=COMMAND"):
            table([wrong])
    with pytest.raises(ImageProblem, match="name another file"):
        table([], file=tmp_path / "none")


def test_a_folder_runs_its_entrypoint(tmp_path: Path) -> None:
    images = Images(table([f"mine={tmp_path}"]))
    with pytest.raises(Unknown, match="has no file 'entrypoint'"):
        images.find(of("mine"))
    program = tmp_path / "entrypoint"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert images.find(of("mine:latest"))[1] == ["entrypoint"]
