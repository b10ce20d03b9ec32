"""What the tests of the recipes import."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
# recipe_environment; the small archives; the toy corpus's grammar
sys.path += [str(HERE), str(HERE.parent / "data_prep"), str(REPO / "data-prep")]
