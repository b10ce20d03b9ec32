"""``python -m transformer_plugin`` is the command ``transformer-plugin``."""

import sys

from .cli import main

sys.exit(main())
