"""`python -m lexrl`: the program `lexrl`."""

from lexrl_command import main

if __name__ == "__main__":
    main()
