"""Every test session uses JAX as runs do: all cores as devices, programs cached."""

import lexrl

lexrl.configure()
