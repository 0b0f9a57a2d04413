"""Lexicographic multi-objective reinforcement learning: objectives in order of importance, no weights to guess."""

from lexrl import backend as _backend

_backend.prepare()
