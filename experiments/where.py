"""What every experiment needs and no application: where the data lie, and options as JSON takes them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def data_folder() -> Path:
    """ANYFILL_DATA, or the folder beside the repository."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("ANYFILL_DATA", default))


def shown(arguments: Mapping[str, object]) -> dict[str, Any]:
    """Arguments as JSON takes them; of a path from the root only its name."""

    def plain(value: object) -> str:
        return value.name if isinstance(value, Path) and value.is_absolute() else str(value)

    return json.loads(json.dumps(dict(arguments), default=plain))
