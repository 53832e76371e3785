"""`python -m tilewright`: the command `tilewright` where it is not on the path."""

import sys

from tilewright.tools.cli import main

sys.exit(main())
