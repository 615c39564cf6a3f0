"""Byte sizes: decimal and binary units, and one clear line for what is no amount of memory."""

from __future__ import annotations

import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.core.numbers.amounts import (
    check_context,
    format_bytes,
    format_count,
    parse_bits,
    parse_context,
)


@each(
    "text, size",
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


@each(
    "text, said",
    [
        ("2", "a number and a unit"),
        ("2048", "has no unit"),
        ("", "amount of memory"),
        ("GiB", "amount of memory"),
        ("-2GiB", "amount of memory"),
        ("2 Gib", "did you mean 'GiB'?"),
        ("2 gigs", "unknown unit 'gigs'"),
        ("0MiB", "out of range"),
        ("1e9 B", "amount of memory"),
        ("0.3 bits", "number of bits"),
        ("9" * 39 + " EiB", "out of range"),
        ("9" * 5000 + "GiB", "is too large"),
        ("inf GiB", "amount of memory"),
        ("２GiB", "amount of memory"),
    ],
)
def test_mistakes_name_the_field_and_the_remedy(text: str, said: str) -> None:
    with pytest.raises(SizeError) as caught:
        parse_bits(text, what="--cache")
    assert said in str(caught.value)
    assert str(caught.value).startswith("--cache: ")
    assert len(str(caught.value)) < 250


@each(
    "bits, text",
    [
        (137_904_128, "16.4 MiB"),  # ux.md: RecurrentGemma-2B
        (8 * 24_576 * 262_144, "6.0 GiB"),  # ux.md: Qwen3-Next-80B
        (8 * 1023, "1,023 bytes"),
        (8, "1 byte"),
        (5, "5 bits"),
        (1, "1 bit"),
        (8 * 1024, "1.0 KiB"),
        (8 * (1024**2 - 1), "1.0 MiB"),  # never 1,024.0 KiB
    ],
)
def test_bytes_for_people(bits: int, text: str) -> None:
    assert format_bytes(bits) == text


@each(
    "value, text, short",
    [
        (0, "0", "0"),
        (999, "999", "999"),
        (98_304, "98,304", "98.3 k"),
        (999_600, "999,600", "1 M"),
        (90_400_000, "90.4 M", "90.4 M"),
        (999_600_000, "1 G", "1 G"),  # never 1e+03 M
        (13 * 10**9, "13 G", "13 G"),
        (10**14, "100 T", "100 T"),
        (10**15, "about 10^15", "about 10^15"),
        (10**400, "about 10^400", "about 10^400"),
    ],
)
def test_counts_for_people(value: int, text: str, short: str) -> None:
    assert format_count(value) == text
    assert format_count(value, shorten_from=1000) == short


@each(
    "text, tokens",
    [
        ("131072", 131_072),
        ("131,072", 131_072),
        ("131_072", 131_072),
        (" 8 ", 8),
        ("256k", 262_144),
        ("256K", 262_144),
        ("1M", 1_048_576),
        ("1m", 1_048_576),
    ],
)
def test_contexts(text: str, tokens: int) -> None:
    assert parse_context(text) == tokens


@each(
    "text",
    [
        "",
        "k",
        "0",
        "0k",
        "-1",
        "1.5k",
        "1,5k",
        "13,1072",
        "1__0",
        "_1",
        "256kb",
        "2G",
        "1e6",
        "256 k",
        "1000000M",
        "9" * 50,
        "٣",
        "²",
    ],
)
def test_no_contexts(text: str) -> None:
    with pytest.raises(SizeError, match="131072"):
        parse_context(text)


def test_a_context_of_many_digits_is_shown_as_it_begins() -> None:
    with pytest.raises(SizeError, match=r"context is 123123[123]*\.\.\.;"):
        parse_context("123" * 100)


def test_a_number_of_another_kind_is_shown_as_what_it_is() -> None:
    """4096 alone would be told that it must be a number of tokens."""
    with pytest.raises(SizeError, match=r"context is np\.int64\(4096\);"):
        check_context(np.int64(4096))
