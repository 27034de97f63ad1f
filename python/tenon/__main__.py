"""python -m tenon: the `tenon` command."""

import sys

from .command import main

sys.exit(main())
