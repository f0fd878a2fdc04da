"""``python -m memorybus.surfaces.cli`` is the command line, also where no script is installed."""

import sys

from memorybus.surfaces.cli.app import main

sys.exit(main())
