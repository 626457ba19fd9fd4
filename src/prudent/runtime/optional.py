"""Libraries that only some users need: imported when first used, and named when they are missing."""

from importlib import import_module
from typing import Any

from prudent.errors import PrudentError


def needed(module: str, extra: str) -> Any:
    """Import a module of an extra, or raise an error that names the extra to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # it is installed, but one of its own imports is not
        raise PrudentError(f"this needs {package}; install it with: pip install 'prudent[{extra}]'") from None
