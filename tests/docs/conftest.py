"""Pages are held to the worked numbers of the golden tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
