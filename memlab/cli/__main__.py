"""`python -m memlab.cli` does what `memlab` does."""

import sys

from memlab.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
