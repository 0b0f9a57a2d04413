"""`lexrl`, and `python -m lexrl`: the command line, also while it is still being imported."""

import os
import signal
from typing import Any


def main() -> None:
    """Run the command line; Ctrl-C ends the imports before it quietly."""
    before = signal.signal(signal.SIGINT, _leave)
    from lexrl import cli

    signal.signal(signal.SIGINT, before)
    cli.main()


def _leave(*_: Any) -> None:
    """At once: a module that is half imported cannot be relied on to pass an exception on."""
    os.write(2, b"lexrl: interrupted.\n")
    os._exit(130)


if __name__ == "__main__":
    main()
