"""`python -m lexrl` is the same as `lexrl`."""

from lexrl.cli import main

main()
