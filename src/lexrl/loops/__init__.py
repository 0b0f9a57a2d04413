"""Loops: one is compiled, one steps environments from Python; both take the same algorithms and give the same numbers."""
