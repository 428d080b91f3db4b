"""Time and memory against other detectors, in one run; the same as `rgld bench speed`.

python benchmarks/speed.py --data FOLDER --lines benchmarks/results/speed.json --out docs/speed.md
"""

import sys

from rgld.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "speed"]
    main()
