"""YAML as people write it, with references to functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


class Function(str):
    """`module.name` of a function beside the YAML file, for `!function`."""


class _Dumper(yaml.SafeDumper):
    """Lists stand below their keys; a text of several lines stands as such."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text.strip("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


def _function(dumper: yaml.SafeDumper, name: Function) -> yaml.Node:
    return dumper.represent_scalar("!function", name)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Function, _function)


def dumped(value: Mapping[str, Any]) -> str:
    """`value` in block style."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)
