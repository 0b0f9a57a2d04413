"""Loops: one is compiled, one steps worlds from Python; both take the same algorithms and give the same numbers."""
