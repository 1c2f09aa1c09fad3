"""``trimtab vmafx tenants``: who runs the platform is told what callers are not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.operators.vmafx.issuer import Issuer
from trimtab.cli.main import parser
from trimtab.cli.vmafx import gateway, tenants
from trimtab.client import ConfigError


async def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    options = parser("vmafx").parse_args(["vmafx", "tenants", *arguments])
    code = await tenants._called(options)
    return code, capsys.readouterr().out


def written(file: Path, *specs: object) -> str:
    file.write_bytes(msgspec.json.encode({"tenants": specs}))
    return f"--file={file}"


async def test_tenants_are_listed_with_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    issuer = Issuer(tmp_path)
    issuer.url = "https://id.example"
    file = written(
        tmp_path / "tenants.json",
        issuer.spec("beta", enabled=False, namespaces=["one", "two"]),
        issuer.spec("acme"),
    )
    code, said = await told(capsys, "list", file)
    assert code == 0
    assert [line.split() for line in said.splitlines()[:3]] == [
        ["TENANT", "NAMESPACES", "ISSUER", "READY", "REASON"],
        ["acme", "vmafx-acme", "https://id.example", "True", "Served"],
        ["beta", "one,two", "https://id.example", "False", "Suspended"],
    ]
    assert said.splitlines()[3].startswith("beta: It is not enabled")


async def test_a_token_is_accepted_or_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Issuer(tmp_path).serving() as issuer:
        file = written(
            tmp_path / "tenants.json", issuer.spec("acme"), issuer.spec("beta")
        )
        token = tmp_path / "token"
        trust = f"--issuer-ca={tmp_path / 'ca.crt'}"
        said = []
        for each in (
            issuer.token("acme", "vmafx:writer", "vmafx:admin"),
            issuer.token("beta", aud="mail"),
            issuer.token("gamma"),
        ):
            token.write_text(f"{each}\n")
            code, sentence = await told(capsys, "check", str(token), file, trust)
            assert each not in sentence
            said.append((code, sentence))
        issuer.status = 500
        token.write_text(issuer.token("beta"))
        said.append(await told(capsys, "check", str(token), file, trust))
    assert said[0] == (
        0,
        "Accepted as acme, with vmafx:writer; its jobs go to vmafx-acme.\n",
    )
    assert said[1] == (
        1,
        "Refused. The token is not for the audience vmafx. (tenant beta)\n",
    )
    assert said[2][0] == 1
    assert "claims to be of no tenant" in said[2][1]
    assert said[3][0] == 1
    assert "cannot be read: it answers 500." in said[3][1]


def test_a_gateway_has_one_way_to_know_its_callers(tmp_path: Path) -> None:
    one = {"VMAFX_AUTH_ISSUER": "https://id", "VMAFX_JWKS_ENDPOINT": "https://id/keys"}
    assert tenants.tenancy_of("", None, {}) is None
    objects = tenants.tenancy_of("objects", None, {})
    assert objects is not None
    assert objects.file is None
    named = tenants.tenancy_of(str(tmp_path / "f"), None, {})
    assert named is not None
    assert named.file == tmp_path / "f"
    provided = tenants.tenancy_of("", None, one)
    assert provided is not None
    assert provided.provider is not None
    with pytest.raises(ConfigError, match="not both"):
        tenants.tenancy_of("objects", None, one)
    for arguments, said in (
        (("--no-auth", "--host", "0.0.0.0"), "for loopback only"),
        (("--no-auth", "--tenants", "objects"), "no --no-auth"),
    ):
        options = parser("vmafx").parse_args(["vmafx", "gateway", *arguments])
        with pytest.raises(ConfigError, match=said):
            gateway._check_open(options, options.tenants != "")
