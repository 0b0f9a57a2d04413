"""The program `lexrl`, outside the package, which takes a moment to import: Ctrl-C is quiet from the start."""

import io
import os
import signal
import sys


def main() -> None:
    """Run the command line; Ctrl-C ends the imports before it quietly."""
    before = signal.signal(signal.SIGINT, _leave)
    if isinstance(sys.stdout, io.TextIOWrapper):  # the name of a folder may be no text, as the standard error expects
        sys.stdout.reconfigure(errors="backslashreplace")
    from lexrl import cli

    signal.signal(signal.SIGINT, before)
    cli.main()


def _leave(*_: object) -> None:
    """At once: a module that is half imported cannot be relied on to pass an exception on."""
    os.write(2, b"lexrl: interrupted.\n")
    os._exit(130)
