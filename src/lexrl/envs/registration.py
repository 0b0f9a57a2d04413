"""The environments in Gymnasium: `gymnasium.make("lexrl/CartSafe-v0", max_episode_steps=200)` once lexrl is imported.

Without importing lexrl first, `gymnasium.make("lexrl:lexrl/CartSafe-v0")` does so itself. Only strings are registered:
`lexrl.envs.exported` is imported when an environment is made.
"""

import gymnasium

for _name in ("CartSafe", "MountainCarSafe", "GridNav"):
    # Gymnasium's own checker expects a scalar reward.
    gymnasium.register(f"lexrl/{_name}-v0", f"lexrl.envs.exported:{_name}", disable_env_checker=True)
