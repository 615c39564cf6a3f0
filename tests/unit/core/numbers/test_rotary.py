"""Angles of rotations: values by hand, and scalings against transformers' own functions."""

from __future__ import annotations

import math

import pytest
from support.each import each

from separatrix.core.errors import SeparatrixError
from separatrix.core.numbers.rotary import Rotation


def test_angles_by_hand() -> None:
    assert Rotation(10_000, 4).frequencies == (1.0, 0.01)
    assert Rotation(10_000, 4, "linear_8").frequencies == (0.125, 0.00125)
    # pair 0 turns 1,024 / (2 pi) = 163 times in the length: kept; pair 1 turns 1.6 times, between 1
    # and 4: kept to (1.6297 - 1) / 3
    kept = (1024 * 0.01 / (2 * math.pi) - 1) / 3
    assert Rotation(10_000, 4, "llama3_8_1_4_1024").frequencies == pytest.approx(
        (1.0, 0.01 * (kept + (1 - kept) / 8)), rel=1e-15
    )


def test_angles_are_enclosed_narrowly() -> None:
    for angle in Rotation(500_000, 128, "llama3_8_1_4_8192").angles:
        assert float(angle.rad()) < 2.0**-100 * float(angle.mid())


@pytest.mark.parametrize(
    ("scaling", "config"),
    [
        ("linear_4", {"rope_type": "linear", "factor": 4.0}),
        (
            "llama3_8_1_4_8192",
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
        ),
        (
            "yarn_40_32_1_4096",
            {
                "rope_type": "yarn",
                "factor": 40.0,
                "beta_fast": 32,
                "beta_slow": 1,
                "original_max_position_embeddings": 4096,
            },
        ),
        (
            "yarnexact_32_32_1_4096",
            {
                "rope_type": "yarn",
                "factor": 32.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 4096,
            },
        ),
    ],
)
@pytest.mark.parametrize(("base", "dims"), [(10_000, 64), (500_000, 128), (150_000, 64)])
@pytest.mark.slow
def test_scalings_are_those_of_transformers(
    scaling: str, config: dict[str, object], base: int, dims: int
) -> None:
    llama = pytest.importorskip("transformers", reason="transformers is not installed")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    model = llama.LlamaConfig(
        hidden_size=dims, num_attention_heads=1, head_dim=dims, max_position_embeddings=131_072
    )
    model.rope_parameters = config | {"rope_theta": float(base)}
    theirs, _ = ROPE_INIT_FUNCTIONS[str(config["rope_type"])](model, "cpu")
    # theirs are float32
    assert Rotation(base, dims, scaling).frequencies == pytest.approx(theirs.tolist(), rel=2e-6)


@each(
    "base, dims, scaling",
    [
        (10_000, 3, None),
        (10_000, 0, None),
        (1, 4, None),
        (10_000, 4, "cubic_4"),
        (10_000, 4, "linear"),
        (10_000, 4, "linear_4_4"),
        (10_000, 4, "linear_0"),
        (10_000, 4, "linear_x"),
        (10_000, 4, "linear_9999999999999"),
        (10_000, 4, "llama3_8_4_1_8192"),
    ],
)
def test_what_is_no_rotation_is_refused(base: int, dims: int, scaling: str | None) -> None:
    with pytest.raises(SeparatrixError, match=r"rotat|rope_scaling"):
        Rotation(base, dims, scaling)


def test_a_ramp_without_width_keeps_fast_pairs_and_slows_the_others() -> None:
    """16 ln(4096 / (32 2 pi)) / (2 ln 10,000) = 2.62: pairs 0, 1 and 2 turn more than 32 times."""
    plain = Rotation(10_000, 16).frequencies
    scaled = Rotation(10_000, 16, "yarnexact_4_32_32_4096").frequencies
    kept = [one / four for one, four in zip(plain, scaled, strict=True)]
    assert kept == pytest.approx([1, 1, 1, 4, 4, 4, 4, 4], rel=1e-12)
