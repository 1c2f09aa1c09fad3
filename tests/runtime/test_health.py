"""Laws of health checks and of how they are told."""

from __future__ import annotations

import pytest

from trimtab.runtime.health import Health


def wrong() -> str | None:
    return "no event for 90 s"


def fine() -> str | None:
    return None


def broken() -> str | None:
    raise KeyError("shop")


def test_a_process_without_checks_is_healthy() -> None:
    assert Health().live() == (True, "ok")
    assert Health().ready() == (True, "ok")


def test_a_healthy_process_says_ok_and_tells_each_check_when_asked() -> None:
    health = Health()
    health.add_ready("caches", fine)
    assert health.ready() == (True, "ok")
    expected = "[+]caches ok\nreadyz check passed\n"
    assert health.ready(verbose=True) == (True, expected)


def test_a_failing_check_is_named_with_all_others() -> None:
    health = Health()
    health.add_ready("watches", wrong)
    health.add_ready("caches", fine)
    healthy, text = health.ready()
    assert not healthy
    assert text == (
        "[-]watches: no event for 90 s\n[+]caches ok\nreadyz check failed\n"
    )


def test_readiness_is_not_liveness() -> None:
    health = Health()
    health.add_ready("watches", wrong)
    assert health.live().healthy
    health.add_live("loop", wrong)
    assert health.live().text.endswith("livez check failed\n")


def test_a_check_that_raises_is_a_failing_check() -> None:
    health = Health()
    health.add_live("loop", broken)
    healthy, text = health.live()
    assert not healthy
    assert "[-]loop: the check itself failed with KeyError: 'shop'" in text


def test_a_check_takes_one_line_whatever_it_says() -> None:
    health = Health()
    health.add_live("loop", lambda: "one\n[+]two ok\r\n")
    assert health.live().text.splitlines()[0] == "[-]loop: one [+]two ok"


def test_two_checks_cannot_have_one_name() -> None:
    health = Health()
    health.add_live("loop", fine)
    with pytest.raises(ValueError, match="'loop' already"):
        health.add_live("loop", wrong)


def test_a_removed_check_is_not_asked_and_its_name_is_free() -> None:
    health = Health()
    remove = health.add_ready("caches", wrong)
    remove()
    assert health.ready().healthy
    health.add_ready("caches", broken)
    remove()
    assert not health.ready().healthy
