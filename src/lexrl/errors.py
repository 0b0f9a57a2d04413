"""Errors that a user can correct."""


class InputError(ValueError):
    """Something was given that does not work: one sentence with what it was, what is needed and what to try."""
