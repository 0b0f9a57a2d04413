"""The names of our environments in Gymnasium, registered by importing lexrl, as is usual."""

import gymnasium

for _name in ("CartSafe", "MountainCarSafe", "GridNav", "Intersection"):
    # Only strings: JAX is imported when an environment is made. Gymnasium's own checker expects a number as the reward.
    gymnasium.register(f"lexrl/{_name}-v0", f"lexrl.envs.registration:{_name}", disable_env_checker=True)
