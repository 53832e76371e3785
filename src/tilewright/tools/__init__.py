"""The command `tilewright`, with a module for each subcommand.

`tensor_descriptor`, a module that Triton has here, is in `triton_alias/tools`.
"""

import os

__path__.append(os.path.join(os.path.dirname(__path__[0]), "triton_alias", "tools"))
