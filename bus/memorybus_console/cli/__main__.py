"""``python -m memorybus_console.cli`` is the command line, also where no script is installed."""

import sys

from memorybus_console.cli import main

sys.exit(main())
