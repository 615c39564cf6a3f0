"""The names under which experiments measure mechanisms: what alters a recurrence is in them, what
stands around it is not.
"""

from __future__ import annotations

from dataclasses import fields

import pytest

from separatrix.architecture import MECHANISMS, Architecture


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("gdn(heads=16, conv=4, gate=silu, format=bf16)", "gdn"),
        ("gdn(negative=true, heads=3)", "gdn(negative=true)"),
        ("deltaproduct", "deltaproduct"),
        (
            "deltaproduct(negative=false, householders=3)",
            "deltaproduct(householders=3, negative=false)",
        ),
        ("rwkv(version=6)", "rwkv(version=6)"),
        ("full(rope=true, qk_norm=head)", "full"),
    ],
)
def test_only_what_makes_another_recurrence_is_named(spec: str, name: str) -> None:
    (layer,) = Architecture.parse(spec).layers
    assert layer[0].measured_as == name
    # a name is a spec, of the same kind
    assert Architecture.parse(name).layers[0][0].measured_as == name


def test_options_that_are_named_exist() -> None:
    for name, mechanism in MECHANISMS.items():
        assert set(mechanism.another_recurrence) <= {f.name for f in fields(mechanism)}, name
