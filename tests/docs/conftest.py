"""The tests of docs/ share how its pages are read."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # pages, command_checks
