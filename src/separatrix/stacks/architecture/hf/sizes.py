"""Sizes of layers as `models.toml` writes them: fields of a file, reckoned with.

An expression is read by Python's own grammar, and means what the head of `models.toml` says; what
no expression can say is a function here.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.fields import (
    LARGEST,
    Fields,
    Size,
    Unknown,
    Value,
    missing,
    shown,
)


def scaled(fields: Fields, whole: Size, *names: str, down: bool = False) -> Size:
    """`whole` times the positive number under one of these spellings (an expansion factor), rounded
    `down` where that is asked for. Raises ConfigError where it is no size.
    """
    name = fields.find(*names)
    if name is None:
        return whole + Unknown((missing(*names),))
    value = fields.data[name]
    if type(value) not in (int, float) or not 0 < value <= LARGEST:  # not a number compares false
        raise fields.wrong(name, f"be a positive number of at most {LARGEST:,}")
    if isinstance(whole, Unknown):
        return whole
    # through text: 1.3 means 13/10, not the float nearest to it
    size = whole * Fraction(str(value))
    if not (down or size.denominator == 1) or not 1 <= size <= LARGEST:
        raise fields.error(f"'{name}' is {value}, which times {whole} is no size; correct it")
    return int(size)


DATA: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("models.toml").read_text(encoding="utf-8")
)


def value_of(of: str | ast.expr, fields: Fields) -> Value:
    """The size that an expression stands for."""
    return _value(parsed(of) if isinstance(of, str) else of, fields)


def size_of(of: str, fields: Fields) -> int:
    """The same, of a size that a file must tell. Raises ConfigError where it does not."""
    return fields.known(_size(parsed(of), fields))


class _Spelled(ast.NodeTransformer):
    """Puts the sizes that have a name in the table in its place."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return parsed(DATA["sizes"][node.id]) if node.id in DATA["sizes"] else node


@lru_cache(maxsize=4096)
def parsed(text: str) -> ast.expr:
    """An expression of the table."""
    # it may stand in several lines, texts in it too
    return _Spelled().visit(ast.parse(" ".join(text.split()), mode="eval")).body


def _names(node: ast.expr) -> tuple[str, ...]:
    """A field, or the spellings of one."""
    several = node.values if isinstance(node, ast.BoolOp) else [node]
    return tuple(map(ast.unparse, several))


def _value(node: ast.expr, fields: Fields) -> Value:
    match node:
        case ast.Constant(value=value):
            assert value is None or isinstance(value, int | str)
            return value
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            given = _optional(left, fields)
            return _value(right, fields) if given is None else given
        case ast.BinOp(left=left, op=op, right=right):
            return _reckoned(node, left, op, right, fields)
        case ast.Compare(left=left, comparators=[right]):
            stated, found = _optional(left, fields), _size(right, fields)
            if stated is not None and isinstance(found, int) and stated != found:
                fixed = isinstance(right, ast.Constant)
                rule = (
                    f"of this model type {found} is read"
                    if fixed
                    else f"{_text(right, fields)} is {found}; correct one of them"
                )
                raise fields.error(f"{_called(left, fields)} is {stated}, but {rule}")
            return stated if isinstance(found, Unknown) and stated is not None else found
        case ast.IfExp(test=test, body=body, orelse=orelse):
            said = _value(test, fields)
            return said if isinstance(said, Unknown) else _value(body if said else orelse, fields)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(each, fields) for each in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, fields)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](fields, *args)
        case _:
            return fields.size(*_names(node))


def _size(node: ast.expr, fields: Fields) -> Size:
    value = _value(node, fields)
    assert isinstance(value, (int, Unknown)), "a size that is reckoned with is a number"
    return value


def _optional(node: ast.expr, fields: Fields) -> int | None:
    if isinstance(node, ast.Call):
        return fields.optional_size(*_names(node.args[0]), low=0)
    return fields.optional_size(*_names(node))


def _reckoned(
    node: ast.expr, left: ast.expr, op: ast.operator, right: ast.expr, fields: Fields
) -> Size:
    if isinstance(op, ast.Mult) and not isinstance(left, ast.Constant):
        return scaled(fields, _size(left, fields), *_names(right))
    one, other = _size(left, fields), _size(right, fields)
    if isinstance(op, ast.Div):
        return fields.quotient(one, other, _text(node, fields))
    if isinstance(op, ast.Add):
        return one + other
    if isinstance(op, ast.Sub):
        left_over = one - other
        return left_over if isinstance(left_over, Unknown) else max(0, left_over)
    if isinstance(op, ast.FloorDiv):
        return one // other
    if not isinstance(op, ast.Mod):
        return one * other
    if isinstance(one, int) and isinstance(other, int) and other % one:
        raise fields.error(
            f"{_called(left, fields)} is {one}, which does not divide"
            f" {_called(right, fields)} = {other}; correct one of them"
        )
    return one


def _text(node: ast.expr, fields: Fields) -> str:
    """An expression in the names of fields, for a message."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _text(right if _optional(left, fields) is None else left, fields)
        case ast.BinOp(left=left, op=op, right=right):
            signs = {"Add": "+", "Sub": "-", "Div": "/", "FloorDiv": "/"}
            sign = signs.get(type(op).__name__, "x")
            return f"{_text(left, fields)} {sign} {_text(right, fields)}"
        case ast.BoolOp():
            return fields.find(*_names(node)) or _names(node)[0]
        case ast.Call(func=ast.Name(id=name), args=args):
            return _text(args[0], fields) if args else name
        case ast.Compare(left=left):
            return _text(left, fields)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _text(body if _value(test, fields) else orelse, fields)
        case _:
            return ast.unparse(node)


def _called(node: ast.expr, fields: Fields) -> str:
    text = _text(node, fields)
    return f"'{text}'" if text in fields.data else "the number of heads"


# ---- what fields say beside sizes


def _stated(fields: Fields, node: ast.expr) -> Value:
    """A flag that no class has a default for."""
    name = ast.unparse(node)
    said = fields.flag(name)
    return Unknown((f"'{name}' is missing",)) if said is None else said


def _says(fields: Fields, node: ast.expr, word: ast.expr) -> Value:
    said = fields.value(ast.unparse(node))
    if said is not None and not isinstance(said, str):
        raise fields.wrong(ast.unparse(node), f"be a text such as {ast.unparse(word)}")
    return said == ast.literal_eval(word)


def _wrong(fields: Fields, node: ast.expr, why: ast.expr) -> Value:
    """Raises ConfigError for a field that this model type should not have."""
    name = ast.unparse(node)
    raise fields.error(f"'{name}' is {shown(fields.value(name))}, but {ast.literal_eval(why)}")


def _open(fields: Fields, node: ast.expr, why: ast.expr) -> Value:
    """A size that classes know, and files are asked for; `why` says what leaving it out means."""
    size = fields.size(*_names(node))
    told = f"{missing(*_names(node))} ({ast.literal_eval(why)})"
    return Unknown((told,)) if isinstance(size, Unknown) else size


def _assumed(fields: Fields, node: ast.expr, why: ast.expr) -> Value:
    fields.note(ast.literal_eval(why))
    return _value(node, fields)


# ---- what rules ask of a layer's number


def _known(fields: Fields, node: ast.expr) -> int:
    return fields.known(_size(node, fields))


def _every(fields: Fields, period: ast.expr, start: ast.expr | None = None) -> Value:
    """Whether it is the last of a period, the first of which begins with the layer `start`."""
    by = _known(fields, period)
    left_out = isinstance(period, ast.BinOp) and _optional(period.left, fields) is None
    if by > 1 and (left_out or isinstance(period, ast.Constant)):
        fields.assume(f"kinds of layers repeat every {by} layers")
    return (fields.layer + 1 - (0 if start is None else _known(fields, start))) % by == 0


def _first(fields: Fields, number: ast.expr) -> Value:
    """Whether it is one of so many at the beginning."""
    return fields.layer < _known(fields, number)


def _sparse(fields: Fields, node: ast.expr, words: ast.expr | None = None) -> Value:
    """Whether its entry of a list says that it has experts, as one of the words does, if there are
    some.
    """
    name = fields.find(*_names(node))
    if name is None:
        return Unknown((missing(*_names(node)),))
    entry = fields.each_layer(name, fields.layers())[fields.layer]
    return entry not in ("dense", 0) if words is None else entry in ast.literal_eval(words).split()


def _each(fields: Fields, node: ast.expr) -> Value:
    """Its own entry, where a field lists every layer."""
    name = fields.find(*_names(node))
    if name is None or json_list(fields.data[name]) is None:
        return fields.size(*_names(node), low=0)
    entries = fields.each_layer(name, fields.layers())
    return fields.with_data({name: entries[fields.layer]}).size(name, low=0)


def _named_in(fields: Fields, node: ast.expr) -> Value:
    """Whether its number is in a list."""
    name = ast.unparse(node)
    listed = json_list([] if fields.value(name) is None else fields.value(name))
    if listed is None:
        raise fields.wrong(name, "list layers")
    return fields.layer in listed


def _entries(fields: Fields, node: ast.expr) -> Value:
    """How many the first list or text has that is there."""
    name = next(filter(fields.has, _names(node)), None)
    if name is None:
        return Unknown((missing(*_names(node)),))
    given = fields.data[name]
    entries = given if isinstance(given, str) else json_list(given)
    if not entries:
        raise fields.wrong(name, "list every layer")
    return len(entries)


def _below(fields: Fields, node: ast.expr, most: ast.expr) -> Value:
    return fields.size(ast.unparse(node), low=0, high=_known(fields, most) - 1)


# ---- widths of MLPs


def _part(fields: Fields, whole: ast.expr, factor: ast.expr) -> Value:
    """The whole part of a product with a number that need not be whole."""
    return scaled(fields, _size(whole, fields), ast.unparse(factor), down=True)


def _up(fields: Fields, node: ast.expr, step: ast.expr) -> Value:
    """Rounded up to a multiple."""
    whole, by = _size(node, fields), _size(step, fields)
    return (whole + by + -1) // by * by


# ---- Mamba


def _mamba_rank(fields: Fields) -> Value:
    """The rank of the step size, where it is another than the model width / 16 (`auto`)."""
    name = fields.find("time_step_rank", "mamba_dt_rank", "dt_rank", "ssm_cfg.dt_rank")
    if name is None or fields.data[name] == "auto":
        return None
    rank = fields.optional_size(name)
    width = fields.optional_size("hidden_size", "d_model")
    return None if width is not None and rank == -(-width // 16) else rank


def _per_head(fields: Fields, whole: ast.expr, heads: ast.expr, head_dim: ast.expr) -> Value:
    """The field `head_dim`; whole / heads where it is missing or "auto". Raises ConfigError where
    the three disagree.
    """
    number, width = _size(heads, fields), _size(whole, fields)
    name = ast.unparse(head_dim)
    if not fields.has(name) or fields.data[name] == "auto":
        what = f"the width of the recurrence / {_called(heads, fields)}"
        return fields.quotient(width, number, what)
    each = fields.size(name)
    known = isinstance(number, int) and isinstance(each, int) and isinstance(width, int)
    if known and number * each != width:
        raise fields.error(
            f"{_called(heads, fields)} x '{name}' is {number} x {each}, but the recurrence has"
            f" {width} channels; correct one of them"
        )
    return each


_MULTIPLE = 64
"""Both widths of an xLSTM are rounded up to a multiple of this in one implementation and not in the
other; read where that makes no difference.
"""


def _xlstm_dim(fields: Fields, factor: ast.expr) -> Value:
    name = ast.unparse(factor)
    channels = scaled(fields, fields.size("hidden_size", "embedding_dim"), name)
    if isinstance(channels, int) and channels % _MULTIPLE:
        raise fields.error(
            f"'{name}' x hidden_size is {channels}, which implementations round differently;"
            f" only multiples of {_MULTIPLE} are supported"
        )
    what = f"'{name}' x hidden_size / num_heads"
    return fields.quotient(channels, fields.size("num_heads"), what)


_OF_FIELDS: dict[str, Callable[[Fields, ast.expr], Value]] = {
    "zero": lambda fields, node: fields.size(*_names(node), low=0),
    "flag": lambda fields, node: bool(fields.flag(ast.unparse(node))),
    "unless": lambda fields, node: fields.flag(ast.unparse(node)) is not False,
    "stated": _stated,
    "has": lambda fields, node: any(map(fields.has, _names(node))),
    "null": lambda fields, node: fields.data.get(ast.unparse(node), 0) is None,
    "named": lambda fields, node: (
        f"'{ast.unparse(node)}' is {shown(fields.value(ast.unparse(node)))}"
    ),
    # the format of a state, where a field states it
    "dtype": lambda fields, node: fields.number_format(ast.unparse(node)) or "fp32",
}
FUNCTIONS: dict[str, Callable[..., Value]] = {
    **_OF_FIELDS,
    "says": _says,
    "assumed": _assumed,
    "open": _open,
    "wrong": _wrong,
    # of a layer's number
    "every": _every,
    "first": _first,
    "entries": _entries,
    "below": _below,
    "sparse": _sparse,
    "each": _each,
    "named_in": _named_in,
    "part": _part,
    "up": _up,
    # of Mamba and xLSTM
    "recurrence": Fields.recurrence,
    "mamba_rank": _mamba_rank,
    "per_head": _per_head,
    "xlstm_dim": _xlstm_dim,
}
"""What expressions of the table may call."""
