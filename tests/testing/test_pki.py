"""The certificates say who is who, for a week, to nobody else."""

import datetime
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from trimtab.testing import pki


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pki")
    pki.make(made)
    return made


def load(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


@pytest.mark.parametrize("name", ["apiserver", "admin", "controller-manager"])
def test_every_certificate_is_from_the_authority(folder: Path, name: str) -> None:
    load(folder, name).verify_directly_issued_by(load(folder, "ca"))


def test_the_administrator_is_in_the_masters_group(folder: Path) -> None:
    subject = load(folder, "admin").subject
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [group.value for group in groups] == ["system:masters"]


def test_the_server_is_known_by_its_loopback_names_only(folder: Path) -> None:
    extensions = load(folder, "apiserver").extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(each) for each in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"127.0.0.1", "::1"}
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]


def test_a_certificate_lives_for_a_week(folder: Path) -> None:
    left = load(folder, "admin").not_valid_after_utc - datetime.datetime.now(
        datetime.UTC
    )
    assert datetime.timedelta(days=6) < left <= datetime.timedelta(days=7)


def test_only_this_user_can_read_them(folder: Path) -> None:
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {0o600}


def test_nothing_is_ever_overwritten(folder: Path) -> None:
    with pytest.raises(FileExistsError):
        pki.write_private(folder / "ca.key", b"")
