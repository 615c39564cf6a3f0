"""Sizes as text: what is read, what is refused, what is added, by hand."""

from __future__ import annotations

import pickle
import re
from copy import deepcopy
from dataclasses import MISSING, fields, replace

import pytest
from support.each import each

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.tasks import TASKS, Eva, parse_any_task, parse_task
from separatrix.tasks.base.described import add_sizes, check_names, name_of, read_sizes, require
from separatrix.tasks.text import TEXT_TASKS


@each(
    "text, name, sizes",
    [
        ("eva", "eva", {}),
        (" eva : n = 4 ", "eva", {"n": 4}),
        ("eva:n=1_000,shift=zipf", "eva", {"n": 1000, "shift": "zipf"}),
        ("eva:n=-3,V=+4", "eva", {"n": -3, "V": 4}),
        ("mqar:power_a=0.5", "mqar", {"power_a": "0.5"}),
        ("a:b=c=d", "a", {"b": "c=d"}),
        (f"eva:n={'9' * 128}", "eva", {"n": int("9" * 128)}),
        ("", "", {}),
    ],
)
def test_what_is_read(text: str, name: str, sizes: dict[str, object]) -> None:
    assert name_of(text) == name
    assert read_sizes(text, "n, V") == sizes


@each(
    "text, error, said",
    [
        ("eva:", SpecError, "'' in the task 'eva:'"),
        ("eva:n", SpecError, "found 'n'"),
        ("eva:=4", SpecError, "found '=4'"),
        ("eva:n=", SpecError, "found 'n='"),
        ("eva:n=4,", SpecError, "found ''"),
        ("eva:n=4,n=5", SpecError, "size 'n'"),
        (f"eva:n={'9' * 129}", SizeError, "no size goes beyond 10\\^100"),
    ],
)
def test_what_is_refused(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        read_sizes(text, "n, V")


@each(
    "text, sizes, joined",
    [
        ("eva", [], "eva"),
        ("eva:n=4,", [], "eva:n=4,"),
        ("eva", ["n=4"], "eva:n=4"),
        ("eva:", ["n=4"], "eva:n=4"),
        ("eva:n=4", ["V=3", "shift=few"], "eva:n=4,V=3,shift=few"),
        ("eva:n=4,", ["V=3"], "eva:n=4,V=3"),
        ("eva: n=4 ", ["V=3"], "eva:n=4,V=3"),
    ],
)
def test_what_is_added(text: str, sizes: list[str], joined: str) -> None:
    assert add_sizes(text, sizes) == joined


def test_names_and_numbers_that_do_not_fit() -> None:
    check_names(Eva.name, Eva.usage, {"n": 4}, ("n", "V"), needed=("n",))
    with pytest.raises(UnknownNameError, match="'W' of task 'eva'"):
        check_names(Eva.name, Eva.usage, {"W": 4}, ("n", "V"), needed=())
    with pytest.raises(SizeError, match="size n is missing"):
        check_names(Eva.name, Eva.usage, {"V": 4}, ("n", "V"), needed=("n",))
    assert require("eva", "n", 4, 1, 4) == 4
    for wrong in (0, 5, 4.0, True, "4"):
        with pytest.raises(SizeError, match="an integer from 1 to 4"):
            require("eva", "n", wrong, 1, 4)


@pytest.mark.parametrize("name", [*TASKS, *TEXT_TASKS])
def test_none_is_no_size_where_texts_cannot_leave_it_out(name: str) -> None:
    task = parse_any_task(f"{name}:easy")
    for one in fields(task):
        if one.default is MISSING:
            with pytest.raises(SizeError, match=rf"\b{re.escape(one.name)} is '?None"):
                replace(task, **{one.name: None})
        elif isinstance(one.default, str):
            with pytest.raises(UnknownNameError):
                replace(task, **{one.name: 10**5_000})


@pytest.mark.parametrize("name", TASKS)
def test_a_task_that_was_asked_its_length_is_copied(name: str) -> None:
    task = parse_task(f"{name}:easy")
    assert task.length > 0
    assert pickle.loads(pickle.dumps(task)) == deepcopy(task) == task


def test_the_least_that_a_message_names_is_taken() -> None:
    with pytest.raises(SizeError, match=r"from 4 to 1024$"):
        parse_task("khop:n=64,V=0,k=7")
    assert parse_task("khop:n=64,V=4,k=7")
