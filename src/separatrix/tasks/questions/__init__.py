"""Tasks with several answers per prompt: `queries=all` or `queries=k` beside the sizes of another
task, whose questions are asked one after another.
"""

from __future__ import annotations

from separatrix.tasks.questions.base import Questions as Questions
from separatrix.tasks.questions.compositions import Starts
from separatrix.tasks.questions.keys import Keys
from separatrix.tasks.questions.prefixes import Counted, Prefixes

# A kind of task that takes several questions is one file here and one of these lines.
QUESTIONS: dict[str, type[Questions]] = {
    "recall": Keys,
    "seqcomp": Starts,
    "parity": Prefixes,
    "modular": Counted,
    "permutation": Prefixes,
    "group": Prefixes,
}
"""Name of a task -> its questions."""
