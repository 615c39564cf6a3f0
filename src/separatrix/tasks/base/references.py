"""Works that tasks and theorems are taken from, by the keys of docs/theory.md."""

from __future__ import annotations

import re
from typing import Final

REFERENCES: Final = {
    "Aro24": "Arora et al., Zoology, arXiv 2312.04927",
    "Bha24": "Bhattamishra, Hahn, Blunsom, Kanade, arXiv 2406.09347",
    "CPW": "Chen, Peng, Wu, arXiv 2412.02975",
    "Peng24": "Peng, Narayanan, Papadimitriou, arXiv 2402.08164",
    "San23": "Sanford, Hsu, Telgarsky, arXiv 2306.02896",
    "San24": "Sanford, Hsu, Telgarsky, arXiv 2402.09268",
    "Wen25": "Wen, Dang, Lyu, arXiv 2402.18510",
    "Ye26": "Ye, He, Liao, Wu, Lu, arXiv 2602.01763",
    "theory.md": "docs/theory.md of Separatrix",
}
"""What tasks and theorems name as their source in brackets, as docs/theory.md does, and it."""


def references(source: str) -> dict[str, str]:
    """Every work that a `source` names by its key. KeyError for one not known."""
    named = re.findall(r"(?<=\[)[A-Z]\w*(?=[\],])|theory\.md", source)
    return {key: REFERENCES[key] for key in dict.fromkeys(named)}
