"""The training tests share the stand-ins beside this file, also with the programs they start."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
