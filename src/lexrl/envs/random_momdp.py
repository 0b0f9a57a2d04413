"""RandomMOMDP: the environment of the paper's scaling experiment."""

from lexrl import memory
from lexrl.envs.finite import FiniteEnv
from lexrl.errors import InputError, require_whole
from lexrl.momdp import MOMDP


def random_env(
    momdp_seed: int = 0,
    num_states: int = 256,
    num_actions: int = 4,
    num_signals: int = 2,
    num_successors: int | None = None,
    tie_fraction: float = 0.0,
    reward_noise: float = 0.2,
    max_episode_steps: int = 100,
) -> FiniteEnv:
    """Random transitions and rewards, with Gaussian noise on the rewards and episodes of fixed length.

    Args:
        momdp_seed: seed of the random MOMDP.
        num_states: number of states; the paper has 256 and 512.
        num_actions: number of actions.
        num_signals: number of signals, named signal_1, signal_2, ...
        num_successors: number of successors of each state and action; a random number each if not given.
        tie_fraction: fraction of states where the first signals do not distinguish the actions.
        reward_noise: standard deviation of the Gaussian noise on each reward.
        max_episode_steps: length of an episode.
    """
    require_whole(num_states=num_states, num_actions=num_actions, num_signals=num_signals)
    require_whole(**({} if num_successors is None else {"num_successors": num_successors}))
    require_whole(0, most=2**63, momdp_seed=momdp_seed)
    if not 0 <= tie_fraction <= 1:
        raise InputError(f"tie_fraction is {tie_fraction}; it must lie in [0, 1].")
    each = num_states * num_actions * (num_successors or num_states)
    memory.require(
        {"transitions and rewards": 8 * each * (8 + 3 * num_signals)},
        {"transitions and rewards": "num_states, num_actions, num_signals or num_successors"},
    )
    momdp = MOMDP.random(
        momdp_seed, num_states, num_actions, num_signals, num_successors=num_successors, tie_fraction=tie_fraction
    )
    return FiniteEnv(momdp, reward_noise=reward_noise, max_episode_steps=max_episode_steps)
