"""How the actors of this process are, for operators: the supervisor writes it, others read."""

from collections.abc import Sequence
from dataclasses import replace

from fetcher.ports import ActorState, UtcNow


class ActorBoard:
    def __init__(self, now: UtcNow) -> None:
        self._now = now
        self._states: dict[str, ActorState] = {}

    def began(self, actor: str) -> None:
        known = self._states.get(actor, ActorState(name=actor, state="running", restarts=0))
        self._states[actor] = replace(known, state="running")

    def crashed(self, actor: str, crash: str) -> None:
        """``crash`` is its type; it will begin again after a wait."""
        known = self._states[actor]
        self._states[actor] = replace(
            known,
            state="restarting",
            restarts=known.restarts + 1,
            last_crash=crash,
            last_crash_at=self._now(),
        )

    def gave_up(self, actor: str) -> None:
        """It crashed too often: the process drains."""
        self._states[actor] = replace(self._states[actor], state="gave_up")

    def ended(self, actor: str) -> None:
        known = self._states[actor]
        if known.state == "running":
            self._states[actor] = replace(known, state="ended")

    def states(self) -> Sequence[ActorState]:
        """In the order in which they first began."""
        return list(self._states.values())
