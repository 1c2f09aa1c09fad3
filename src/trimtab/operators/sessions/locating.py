"""Locating: where the runner of a session is, and what it is shown.

Both are read when somebody is about to call it, which is seldom: a pod's address, and
the token in the session's Secret.
"""

from __future__ import annotations

from trimtab.client import Client, TrimtabError
from trimtab.kinds import Pod, Secret
from trimtab.operators.sessions import names
from trimtab.operators.sessions.calling import PORT, Runner
from trimtab.operators.sessions.environment import AGUI_TOKEN
from trimtab.operators.sessions.kinds import AgenticSession


class NoRunner(TrimtabError):
    """A session has no runner that could be called."""


async def find(client: Client, session: AgenticSession, *, port: int = PORT) -> Runner:
    """The runner of a session: its own pod, or the warm worker that it has.

    Errors: :class:`NoRunner` while there is no address; whatever the server answers.
    """
    namespace, name = session.key
    pod = await client.get(
        Pod, session.status.worker or names.pod_name(name), namespace=namespace
    )
    if not pod.status.podIP:
        raise NoRunner(f"The pod of {namespace}/{name} has no address yet.")
    return Runner(
        key=session.key,
        host=pod.status.podIP,
        port=port,
        token=await token_of(client, session),
    )


async def token_of(client: Client, session: AgenticSession) -> str:
    """What the runner of a session is shown.

    The name of its Secret follows from the session's, whatever an annotation says: who
    may edit one session could otherwise have the token of another shown to its runner.
    """
    name = names.token_secret_name(session.metadata.name)
    secret = await client.get(Secret, name, namespace=session.metadata.namespace)
    token = secret.data.get(AGUI_TOKEN, b"").decode(errors="replace").strip()
    if not token.isprintable():
        raise NoRunner(
            f"The {AGUI_TOKEN} in the Secret {name} has a line break or worse in it; "
            "delete the Secret, and a new one is made."
        )
    return token
