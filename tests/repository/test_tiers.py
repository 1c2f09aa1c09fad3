"""A tier counts every test once, keeps its budget, and says so in its last line."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hack import report, tiers

MIXED = """
    import pytest

    @pytest.fixture
    def breaks_at_the_end():
        yield
        raise RuntimeError("torn")

    def test_passes(): ...
    def test_fails(): assert False
    def test_errs(missing_fixture): ...
    def test_ends_badly(breaks_at_the_end): ...
    def test_fails_and_ends_badly(breaks_at_the_end): assert False

    @pytest.mark.skip(reason="not today")
    def test_is_skipped(): ...

    @pytest.mark.xfail(reason="a known bug")
    def test_is_known_to_fail(): assert False

    @pytest.mark.parametrize("n", [1, 2])
    def test_passes_twice(n): ...
"""
PASSING = "def test_passes(): ...\n"
SKIPPED = "import pytest\ndef test_is_skipped(): pytest.skip('no')\n"


def tier(folder: Path, code: str, *, minutes: float = 1) -> tiers.Tier:
    """A tier of its own, whose tests are the given code."""
    (folder / "test_them.py").write_text(textwrap.dedent(code))
    return tiers.Tier("small", minutes, (f"--rootdir={folder}", f"-c{os.devnull}"))


def run(folder: Path, code: str, *, minutes: float = 1) -> int:
    return tiers.run(tier(folder, code, minutes=minutes), [str(folder)])


def last_line(capfd: pytest.CaptureFixture[str]) -> str:
    return capfd.readouterr().out.splitlines()[-1]


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # The tests of these tiers use no plugin, and loading ours is half of a run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_every_test_is_counted_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, MIXED) == 1
    assert last_line(capfd) == "3 passed, 4 failed, 2 skipped"


def test_a_run_in_which_all_pass_ends_with_zero(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, PASSING) == 0
    assert last_line(capfd) == "1 passed, 0 failed, 0 skipped"


def test_a_run_of_no_tests_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "") == 1
    assert last_line(capfd) == "0 passed, 1 failed, 0 skipped"


def test_a_file_that_cannot_be_collected_fails_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "import no_such_module\n") == 1
    assert last_line(capfd) == "0 passed, 1 failed, 0 skipped"


def test_a_pytest_that_dies_fails_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "import os\ndef test_dies(): os._exit(3)\n") == 1
    output = capfd.readouterr().out
    assert "pytest ended with code 3 and left no report." in output
    assert output.endswith("\n0 passed, 1 failed, 0 skipped\n")


def test_a_tier_over_its_budget_fails_though_its_tests_pass(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, PASSING, minutes=0.001) == 1
    output = capfd.readouterr().out
    assert "its budget is 0 s" in output
    assert "slowest: test_them.test_passes" in output
    assert output.endswith("\n1 passed, 1 failed, 0 skipped\n")


def test_a_skipped_test_fails_the_run_in_ci_and_only_there(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path, SKIPPED) == 0
    assert last_line(capfd) == "0 passed, 0 failed, 1 skipped"
    monkeypatch.setenv("CI", "true")
    assert run(tmp_path, SKIPPED) == 1
    output = capfd.readouterr().out
    assert "In CI no test may be skipped" in output
    assert output.endswith("\n0 passed, 1 failed, 1 skipped\n")


def test_a_run_that_hangs_is_interrupted_and_cleans_up(tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"
    code = f"""
        import pathlib, signal, sys
        # Who was started in the background of a shell ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            print("hanging", flush=True)
            signal.pause()
        except KeyboardInterrupt:
            pathlib.Path({str(cleaned)!r}).touch()
            sys.exit(2)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"hanging\n"
        assert tiers.wait(process, within=0.01) == 2
    assert cleaned.exists()


def test_a_check_that_fails_shows_why(capfd: pytest.CaptureFixture[str]) -> None:
    program = (sys.executable, "-c", "print('a reason'); raise SystemExit(1)")
    assert not tiers.run_check(tiers.Step("a check", program))
    reason, line = capfd.readouterr().out.splitlines()
    assert reason == "a reason"
    assert line.split()[:3] == ["a", "check", "FAILED"]


def test_a_check_beside_the_tests_fails_the_run_though_they_pass(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (sys.executable, "-c", "print('a reason' * 9999); raise SystemExit(1)")
    monkeypatch.setattr(tiers, "checks", list)
    monkeypatch.setattr(tiers, "types", lambda: tiers.Step("types", program))
    chosen = tier(tmp_path, PASSING)._replace(checks=True)
    assert tiers.run(chosen, [str(tmp_path)]) == 1
    output = capfd.readouterr().out
    assert "a reason" in output
    assert "Failed besides the tests: types." in output
    assert output.endswith("\n1 passed, 1 failed, 0 skipped\n")


def test_bytecode_is_kept_whoever_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("ANYTHING", "else")
    assert "PYTHONDONTWRITEBYTECODE" not in tiers.environment()
    assert tiers.environment()["ANYTHING"] == "else"


def test_the_evidence_of_a_long_run_has_its_date_figures_and_tests(
    tmp_path: Path,
) -> None:
    cases = (
        report.Case("test_a", 1.25, failed=False, skipped=False),
        report.Case("test_b", 3.0, failed=True, skipped=False),
    )
    path = report.write_evidence(report.Report(cases), root=tmp_path, seconds=4.4)
    text = path.read_text()
    assert path.parent == tmp_path / "docs" / "evidence"
    assert "| result | 1 passed, 1 failed, 0 skipped |" in text
    assert "| `test_a` | passed | 1.2 |" in text
    assert "| `test_b` | failed | 3.0 |" in text
    assert " cores, " in text


def test_the_budgets_are_the_promised_ones() -> None:
    minutes = {name: tier.minutes for name, tier in tiers.TIERS.items()}
    assert minutes == {"test": 6, "cluster": 15, "long": 60}
