"""What the adversaries of Theorems VI and VII do with random protocols, and what they catch of
broken ones.

    python benchmarks/adversaries.py [SEEDS]

Plays the protocols of seeds 0 to SEEDS-1 (100, about two minutes) as they are, and broken in each
way of tests/adversaries/broken.py. A break is *shown* if a rule was broken in anything that the
adversary looked at. What is not caught although it was shown: the smuggled token or the large
value was the same, or absent, in all that was compared when its message was fixed, or it stands in
a message that no step fixes. Such a play ends in two prompts that are checked by running the broken
protocol on them, so nothing false is ever concluded.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from adversaries.trials import WAYS, plays


def main(seeds: int) -> None:
    print(f"{'':18}{'plays':>6}{'shown':>7}{'caught':>8}{'share':>7}  by, and how the rest ended")
    all_shown = 0
    all_caught = 0
    for way in (None, *WAYS):
        found = plays(range(seeds), way)
        shown = sum(one.shown for one in found)
        caught = sum(one.end == "caught" for one in found)
        laws = Counter(one.law if one.end == "caught" else one.end for one in found)
        words = ", ".join(f"{law} {count}" for law, count in laws.most_common())
        share = f"{caught / shown:7.0%}" if shown else f"{'-':>7}"
        print(f"{way or 'honest':18}{len(found):6}{shown:7}{caught:8}{share}  {words}", flush=True)
        if way is None:
            print(f"{'':18}{sum(one.asserted for one in found):,} assertions")
        all_shown += shown
        all_caught += caught
    print(f"{'broken, all':18}{'':6}{all_shown:7}{all_caught:8}{all_caught / all_shown:7.0%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
