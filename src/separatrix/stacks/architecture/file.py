"""Reading a JSON file that somebody else wrote: plain data, or one line that says what is wrong
with the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from separatrix.core.errors import ConfigError

LARGEST_FILE = 64 * 2**20
"""Bytes; the largest config.json seen in the wild has less than 1 MiB."""


def label(path: Path) -> str:
    """A path as it may stand in a one-line message."""
    text = str(path)
    return text if text.isprintable() and len(text) <= 200 else repr(text)[:200]


def config_file(path: Path) -> Path:
    """The file to read: `path`, or the config.json in the folder `path`. Raises ConfigError when
    there is none.
    """
    inner = path / "config.json"
    try:
        if path.is_dir():
            why = "" if inner.is_file() else "the folder holds no config.json; pass a model's"
        else:
            inner, why = path, "" if path.is_file() else "not a regular file; pass a config.json"
            if not path.exists():
                why = "no such file or folder (nothing is downloaded); pass a config.json's path"
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    if why:
        raise ConfigError(f"{label(path)}: {why}")
    return inner


def load_json(path: Path) -> Any:
    """The JSON in a file. Raises ConfigError for a file that is missing, empty, too large, no
    text or no JSON, or gives a field twice.
    """
    path = config_file(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ConfigError(
                f"{label(path)}: larger than {LARGEST_FILE // 2**20} MiB: no config.json"
            )
        # -sig: some editors begin a file with a byte order mark
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{label(path)}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{label(path)}: not a text file; pass the config.json") from None
    return parse_json(text, label(path))


def parse_json(text: str, where: str) -> Any:
    """The JSON in `text`. Raises ConfigError that begins with `where`."""
    if not text.strip():
        raise ConfigError(f"{where}: it is empty; get a whole copy of the model's config.json")
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, where))
    except RecursionError:
        raise ConfigError(f"{where}: nested too deeply to be a model's config.json") from None
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{where}: not JSON, or cut off: {error.msg} at line {error.lineno}, column"
            f" {error.colno}; get a whole copy of it"
        ) from None
    except ValueError:
        raise ConfigError(f"{where}: holds an integer of more than 4,300 digits") from None


def _once(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ConfigError(f"{where}: the field {twice[:60]!r} is given twice; keep one of them")
    return data
