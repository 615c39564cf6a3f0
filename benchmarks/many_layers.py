"""How short prompts the search behind Theorems VI and VII finds, and how long it takes, at the rows
of theory.md, section 11, and with five and six reading layers.

Run by hand: python benchmarks/many_layers.py
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.many_layers import TheoremVI, TheoremVII

SMALL = (1, 4, 8)
LARGE = (1, 16, 16)


@dataclass(frozen=True)
class Row:
    """(H, d, p), VI (0) or VII (1), how many bounded layers stand in each group, n as printed."""

    hdp: tuple[int, int, int]
    ahead: int
    groups: tuple[int, ...]
    printed: str = ""

    @property
    def sizes(self) -> Sizes:
        """Those of the stack."""
        H, d, p = self.hdp
        h = H * (d + 1) * p
        readers = len(self.groups) - 1
        sigma = tuple(layers * h * d for layers in self.groups)
        return Sizes((h,) * readers, sigma, (0,) * readers)


ROWS = [
    Row(SMALL, 1, (0, 0, 0, 0), "2.9958e+14"),
    Row(LARGE, 1, (0, 0, 0, 0), "1.2742e+21"),
    Row(SMALL, 0, (1, 1, 1, 1), "5.3417e+21"),
    Row(LARGE, 0, (1, 1, 1, 1), "5.5056e+32"),
    Row(SMALL, 0, (1, 1, 1), "4.1718e+08"),
    Row(LARGE, 0, (1, 1, 1), "2.1980e+13"),
    Row(SMALL, 1, (0, 0, 0, 1), "2.9958e+14"),
    Row(LARGE, 1, (0, 0, 0, 1), "1.4316e+21"),
    Row(SMALL, 1, (0, 1, 1, 1), "1.9590e+15"),
    Row(LARGE, 1, (0, 1, 1, 1), "9.8366e+21"),
    Row(SMALL, 1, (0,) * 5, "1.4581e+32"),
    Row(LARGE, 1, (0,) * 5, "3.3585e+46"),
    Row(SMALL, 0, (2, 2, 2), "7.4584e+08"),
    Row(LARGE, 0, (2, 2, 2), "4.0610e+13"),
    Row(SMALL, 0, (2, 2, 2, 2), "8.1509e+21"),
    Row(LARGE, 0, (2, 2, 2, 2), "9.9573e+32"),
    *(
        Row(hdp, ahead, (1 - ahead,) * (readers + 1))
        for readers in (4, 5, 6)
        for hdp in (SMALL, LARGE)
        for ahead in (0, 1)
        if readers > 4 or not ahead
    ),
]


def shown(n: int) -> str:
    """An integer of any size with five digits."""
    digits = str(n)
    return f"{digits[0]}.{digits[1:5]}e+{len(digits) - 1:02}"


def main() -> None:
    """Print a table: each row is searched for anew."""
    print("| theorem | (H,d,p) | bounded layers | n printed | n found | ratio | s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in ROWS:
        argument = (TheoremVI(), TheoremVII())[row.ahead]
        begun = process_time()
        found = argument.shortest(row.sizes)
        done = process_time()
        assert found is not None
        assert argument.holds(row.sizes, found)
        n = found.length()
        ratio = f"{n / float(row.printed):.4f}" if row.printed else ""
        cells = (
            "VII" if row.ahead else "VI",
            ",".join(map(str, row.hdp)),
            ",".join(map(str, row.groups)),
            row.printed,
            shown(n),
            ratio,
            f"{done - begun:.2f}",
        )
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
