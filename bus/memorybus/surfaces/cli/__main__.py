"""``python -m memorybus.surfaces.cli`` is the command line, also where no script is installed."""

import sys

from memorybus.surfaces.cli import main

sys.exit(main())
