"""Byte sizes: decimal and binary units, and one clear line for what is no amount of memory."""

from __future__ import annotations

import pytest

from separatrix.errors import SizeError
from separatrix.numbers.amounts import format_bytes, parse_bits


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 * 1024**3),
        ("512 MiB", 512 * 1024**2),
        ("1.5GB", 1_500_000_000),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1 KiB", 1024),
        (" 3 TiB ", 3 * 1024**4),
        ("4096 bytes", 4096),
        ("1 byte", 1),
        ("7B", 7),
        ("1_000,000 B", 1_000_000),
        (".5KiB", 512),
    ],
)
def test_bytes_are_read(text: str, size: int) -> None:
    assert parse_bits(text) == 8 * size


def test_bits_are_read() -> None:
    assert parse_bits("12 bits") == 12
    assert parse_bits("0.125 bytes") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2", "has no unit; write a number and a unit"),
        ("2048", "has no unit"),
        ("", "is no amount of memory"),
        ("GiB", "is no amount of memory"),
        ("-2GiB", "is no amount of memory"),
        ("2 Gib", "did you mean 'GiB'?"),
        ("2 gigs", "unknown unit 'gigs'; known are"),
        ("0MiB", "is out of range"),
        ("1e9 B", "is no amount of memory"),
        ("0.3 bits", "no whole number of bits"),
        ("9" * 39 + " EiB", "is out of range"),
        ("9" * 5000 + "GiB", "is too large"),
        ("inf GiB", "is no amount of memory"),
        ("２GiB", "is no amount of memory"),
    ],
)
def test_mistakes_name_the_field_and_the_remedy(text: str, said: str) -> None:
    with pytest.raises(SizeError) as caught:
        parse_bits(text, what="--cache")
    assert said in str(caught.value)
    assert str(caught.value).startswith("--cache: ")
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (137_904_128, "16.4 MiB"),  # ux.md: RecurrentGemma-2B
        (8 * 24_576 * 262_144, "6.0 GiB"),  # ux.md: Qwen3-Next-80B
        (8 * 1023, "1,023 bytes"),
        (8, "1 byte"),
        (5, "5 bits"),
        (1, "1 bit"),
        (8 * 1024, "1.0 KiB"),
    ],
)
def test_bytes_for_people(bits: int, text: str) -> None:
    assert format_bytes(bits) == text
