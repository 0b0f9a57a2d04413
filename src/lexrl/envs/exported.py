"""The names of our environments in Gymnasium, registered by importing this module.

Gymnasium 1.0 dropped the entry points by which it found the environments of other packages, so `import lexrl` imports
this module if Gymnasium is imported already, and otherwise `envs/gym.py` does when it is first used.
"""

import gymnasium

for _name in ("CartSafe", "MountainCarSafe", "GridNav"):
    # Only strings: JAX is imported when an environment is made. Gymnasium's own checker expects a number as the reward.
    gymnasium.register(f"lexrl/{_name}-v0", f"lexrl.envs.registration:{_name}", disable_env_checker=True)
