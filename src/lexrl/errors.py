"""What goes wrong by the user's hand."""


class InputError(ValueError):
    """The user gave something that cannot work: one sentence with what was given, what is needed, what to try."""
