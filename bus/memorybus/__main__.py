"""``python -m memorybus``: the command line."""

import sys

from memorybus_console.cli import main

if __name__ == "__main__":
    sys.exit(main())
