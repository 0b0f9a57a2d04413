"""Write `golden.json` anew: `python tests/golden/record.py`, or only the cases whose names begin with what is given, as
in `record.py DQN LDQN`. Do so only where numbers are meant to change."""

import json
import re
import sys
from typing import Any

from cases import COUNTED, FILE, Case, cases, compilations, fingerprint, measure

import lexrl


def main(begins: tuple[str, ...]) -> None:
    """Train what is asked for, and write what came out beside what is known of the others."""
    lexrl.configure()  # as in the tests
    known = json.loads(FILE.read_text())["cases"] if begins else {}

    def renewed(name: str, case: Case) -> dict[str, Any]:
        return known[name] if name in known and not name.startswith(begins) else _measured(case)

    content = {
        "fingerprint": fingerprint(),
        "cases": {name: renewed(name, case) for name, case in cases().items()},
        "compilations": {name: compilations(name) for name in COUNTED},
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    lists = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), text)
    FILE.write_text(lists + "\n")


def _measured(case: Case) -> dict[str, Any]:
    return {loop: measure(case, loop) for loop in case.loops}


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
