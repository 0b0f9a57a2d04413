"""Write `golden.json` anew: `python tests/golden/record.py`. Do so only where numbers are meant to change."""

import json
import re

from cases import COUNTED, FILE, cases, compilations, fingerprint, measure


def main() -> None:
    """Train everything, and write what came out."""
    content = {
        "fingerprint": fingerprint(),
        "cases": {name: {loop: measure(case, loop) for loop in case.loops} for name, case in cases().items()},
        "compilations": {name: compilations(name) for name in COUNTED},
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    lists = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), text)
    FILE.write_text(lists + "\n")


if __name__ == "__main__":
    main()
