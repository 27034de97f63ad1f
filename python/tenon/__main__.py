"""python -m tenon: the `tenon` command."""

import sys

from ._tools.command import main

sys.exit(main())
