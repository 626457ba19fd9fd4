"""Print the lowest versions that pyproject.toml allows, as constraints for pip: ``make test-lowest``."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
for group in (project["dependencies"], *project["optional-dependencies"].values()):
    for name, version in re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(group), flags=re.MULTILINE):
        print(f"{name}=={version}")
