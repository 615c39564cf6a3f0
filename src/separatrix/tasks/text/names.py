"""Invented names: six letters each, any of them as fit for a person as for a river, so that no fact
can be guessed from a name.

A name is a consonant, a vowel, two consonants that seldom meet, a vowel, a consonant. The letters
have values, and the last letter is the one that makes them sum to zero: two names then differ in at
least two letters. All are of one length, so that none is the beginning of another.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Final

_FIRST: Final = "bdfgjklmnprstvz"
_LAST: Final = "bdfgxklmnprstvz"
_VALUE: Final = {
    letter: value for letters in (_FIRST, _LAST, "aeiou") for value, letter in enumerate(letters)
}
_PAIRS: Final = """
    bk bz dp dz fg fk fp fz gf gk gp gz kf kg kp kz mz pf pg pk pz tf tg vb vd vg vk vm vz zb zf
    zg zk zp
"""
MOST: Final = 12_016
"""How many names there are."""
_RUDE: Final = """
    dik fag fap fuk gas gip jap jiz kak kik kok kum lez naz nig nip pak pis pus rap sex tit
"""
"""Parts of words that a reader would stumble over, in several languages."""
_TAKEN: Final = """
    babkin babkom bagful begzat bezpal bigfok bozkan bugfix dapkus devdev devgun devkar devman
    ditges dovbis fetges fitger gezgen jevgen kabzas kazgan kodzik kopfer ladpur lepkim lipkan
    lobkov lovbok lupfen mavzer migpol mutfak nafkot nakpan nakpil namzov nepgen nezgod nikzad
    nizkov novkov pekpek radzak razguz robkes rozpuk rukfen safkat sapfan savkov sefker sevmis
    sovket sukfan tagzad topkov tukzar vedpal zikzin
"""
"""Words, or names of people and places, found in lists of two million of them (gazetteers, name
registers, word frequencies of 40 languages).
"""

PATTERN: Final = (
    f"[{_FIRST.upper()}][aeiou](?:{'|'.join(_PAIRS.split())})[aeiou][{''.join(sorted(set(_LAST)))}]"
)
"""A regular expression of names, which hardly any other word matches."""


@cache
def names() -> tuple[str, ...]:
    """Every name, in a fixed order: the same on every machine, about 12,000."""
    rude = _RUDE.split()
    taken = set(_TAKEN.split())
    found = []
    for letters in product(_FIRST, "aeiou", _PAIRS.split(), "aeiou"):
        start = "".join(letters)
        name = start + _LAST[-sum(_VALUE[letter] for letter in start) % len(_LAST)]
        if name not in taken and not any(part in name for part in rude):
            found.append(name.capitalize())
    return tuple(found)
