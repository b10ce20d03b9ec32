"""What the tests of the exchange import."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))  # stock_models
