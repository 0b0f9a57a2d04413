"""What a learner meets of an environment of Gymnasium's, be it a single one or a vector of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lexrl.envs.crowd import BatchedStep
from lexrl.envs.signals import Event, Signals
from lexrl.envs.spaces import Moves, View
from lexrl.types import Spec


class Face(NamedTuple):
    """What an environment shows, what it takes, and what it pays."""

    view: View
    moves: Moves
    signals: Signals

    def spec(self, max_episode_steps: int) -> Spec:
        """All that an algorithm may know of it."""
        return Spec(self.view.space, self.moves.space, self.signals.names, max_episode_steps)

    def answers(self, events: Sequence[Event], ended: Any, cut: Any) -> BatchedStep:
        """One step of several worlds, as the host loop wants it."""
        obs = self.view.together([event.obs for event in events])
        paid = np.array([self.signals.read(event) for event in events], np.float32)
        return BatchedStep(obs, paid, 1 - np.asarray(ended, np.float32), np.array(cut, bool))
