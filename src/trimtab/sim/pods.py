"""Model pods: what runs in the containers that the model kubelet starts.

Which program an image stands for is a part of the scenario. It is started when its pod
is, at the pod's address, and is gone with it. Pods of other images are only objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

import msgspec

from trimtab.sim.programs import Main, Program, ProgramReplica
from trimtab.sim.replica import Surroundings
from trimtab.sim.server import Plain

FIRST: Final = 1000
"""Replicas of model pods are numbered from here on: no fault of a plan names them."""
GRACE: Final = 30.0


class ModelPods:
    """The processes of all model pods, by the uid of their pod."""

    def __init__(
        self,
        images: Mapping[str, Main],
        around: Surroundings,
        *,
        ended: Callable[[Plain], None],
    ) -> None:
        self._images = images
        self._around = around
        self._ended = ended
        self._numbers = count(FIRST)
        self._running: dict[str, ProgramReplica] = {}
        self._killed_at: dict[str, float] = {}
        """When a pod that is going is killed, if its program has not ended by then."""
        self._addresses: dict[str, str] = {}

    def address(self, pod: Plain) -> str:
        """The address of a pod: the lowest that no other pod has."""
        uid = pod["metadata"]["uid"]
        if uid not in self._addresses:
            taken = set(self._addresses.values())
            free = (f"10.1.{each >> 8}.{each & 255}" for each in count(1))
            self._addresses[uid] = next(each for each in free if each not in taken)
        return self._addresses[uid]

    def has(self, pod: Plain) -> bool:
        """Whether a program runs in it, or should."""
        return self._main(pod) is not None

    def _main(self, pod: Plain) -> Main | None:
        image: str = pod["spec"]["containers"][0].get("image", "")
        return self._images.get(image.rpartition("/")[2].partition(":")[0])

    def serves(self, pod: Plain) -> bool:
        """Whether its program serves; one that does not run is started."""
        main, uid = self._main(pod), pod["metadata"]["uid"]
        if main is None:
            return True
        replica = self._running.get(uid)
        if replica is None:
            replica = self._running[uid] = self._made(main, pod)
            replica.start()
        return replica.serves

    def _made(self, main: Main, pod: Plain) -> ProgramReplica:
        pod = msgspec.json.decode(msgspec.json.encode(pod))
        return ProgramReplica(
            Program(pod["metadata"]["name"], main, ends=True),
            pod["metadata"]["name"],
            next(self._numbers),
            around=self._around,
            address=self.address(pod),
            pod=pod,
            ended=lambda: self._ended(pod),
        )

    def finished(self, pod: Plain) -> bool:
        """Whether its program has ended by itself."""
        replica = self._running.get(pod["metadata"]["uid"])
        return replica is not None and replica.finished

    def is_gone(self, pod: Plain) -> bool:
        """Tell its program to stop, and kill it when its grace is over; is it done?"""
        uid = pod["metadata"]["uid"]
        replica = self._running.get(uid)
        if replica is None or not replica.running:
            return True
        now = self._around.loop.time()
        grace = pod["spec"].get("terminationGracePeriodSeconds", GRACE)
        if now >= self._killed_at.setdefault(uid, now + grace):
            self.kill(pod)
            return True
        replica.retire()
        return False

    def kill(self, pod: Plain) -> None:
        """End its program without a word; :meth:`serves` starts another."""
        replica = self._running.pop(pod["metadata"]["uid"], None)
        if replica is not None:
            replica.retired = True
            replica.die(back_in=0.0)

    def forget(self, pod: Plain) -> None:
        """The pod is gone."""
        self.kill(pod)
        self._addresses.pop(pod["metadata"]["uid"], None)
        self._killed_at.pop(pod["metadata"]["uid"], None)

    def close(self) -> None:
        """The end of the world."""
        for replica in self._running.values():
            replica.retired = True
            replica.die(back_in=0.0)
