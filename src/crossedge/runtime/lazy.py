"""Public names that are imported when they are first used, and errors that say what to install."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

# the extra that brings each optional package
EXTRAS = {
    "distributed": "cluster",
    "jinja2": "tables",
    "joblib": "studies",
    "matplotlib": "plots",
    "openpyxl": "tables",
    "pandas": "tables",
    "PIL": "tables",
    "pyarrow": "tables",
    "rich": "learn",
    "sklearn": "learn",
    "torch": "torch",
    "zstandard": "tables",
}


def lazy_attribute(homes: Mapping[str, str], package: str, name: str) -> Any:
    """Return a public name from the module that defines it, or a submodule that has the name."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    try:
        home = import_module(homes[name])
    except ModuleNotFoundError as missing:
        raise ImportError(what_to_install(name, missing)) from None
    return home if homes[name] == f"{package}.{name}" else getattr(home, name)


def what_to_install(name: str, missing: ModuleNotFoundError) -> str:
    """Return one line that says which extra brings the missing package."""
    extra = EXTRAS.get(str(missing.name).partition(".")[0])
    if extra is None:
        return str(missing)  # which may say it already
    return f"{name} needs {missing.name}: pip install 'crossedge[{extra}]'"


def installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # somebody's import hook says so
        return False
