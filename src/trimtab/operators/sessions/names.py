"""Names: what everything that belongs to a session is called.

The names are the session's own with something before or after it, because other
programs look for them. A session whose name leaves no room for that is told so before
anything is made of it.
"""

from __future__ import annotations

from typing import Final

from trimtab.api.names import LABEL_LIMIT, check_label

LONGEST: Final = LABEL_LIMIT - len("session-")
"""Characters that the name of a session may have: its Service's is the tightest."""


def pod_name(session: str) -> str:
    return f"{session}-runner"


def service_name(session: str) -> str:
    return f"session-{session}"


def account_name(session: str) -> str:
    return f"ambient-session-{session}"


def role_name(session: str) -> str:
    return f"{account_name(session)}-role"


def binding_name(session: str) -> str:
    return f"{account_name(session)}-rb"


def token_secret_name(session: str) -> str:
    return f"ambient-runner-token-{session}"


def check(session: str) -> str | None:
    """What is wrong with the name of a session, in a sentence; None if nothing is.

    Guarantees: every name above is one that a server takes, and the session's own one
    that a label takes, if this finds nothing.
    """
    advice = (
        f"Make it again with a name of at most {LONGEST} lower case letters, digits "
        "and '-'."
    )
    if len(session) > LONGEST:
        return (
            f"The name of the session has {len(session)} characters, and its Service, "
            f"{service_name('…')}, has room for {LONGEST} of them. {advice}"
        )
    try:
        check_label(session)
    except ValueError:
        return f"The name {session!r} cannot be part of a Service's. {advice}"
    return None
