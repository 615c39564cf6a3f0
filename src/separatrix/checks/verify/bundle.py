"""Checks the table of a bundle: its whole body is derived again from its settings and its records,
and must be the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from separatrix.cards.table.body import Settings, derive
from separatrix.cards.table.plan import KINDS
from separatrix.checks.verify.same import difference
from separatrix.core.errors import CheckFailed, EvidenceError, SeparatrixError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import Evidence
from separatrix.core.evidence.typed import typed

_OTHER_VERSION = " (what another version of this package wrote must be written again)"


def verify_table(body: Mapping[str, Any], records: Mapping[str, Evidence]) -> None:
    """Raises CheckFailed unless the body is what its settings and records give, to the letter: all
    but what nobody can derive, its kind, its seed, and which models it reads. Raises EvidenceError
    for settings of another form.
    """
    try:
        settings = typed(body.get("settings"), Settings, "settings")
    except EvidenceError as error:
        raise EvidenceError(f"{error}{_OTHER_VERSION}") from None
    if settings.kind not in KINDS:
        raise EvidenceError(f"this is no bundle of a table{_OTHER_VERSION}")
    try:
        again = derive(settings, records)
    except SeparatrixError as error:
        raise CheckFailed(
            f"the table does not follow from its records: {error}{_OTHER_VERSION}"
        ) from None
    if canonical(again) != canonical(body):
        raise CheckFailed(
            "the table does not follow from its records:"
            f" {difference(json.loads(canonical(again)), body, 'the body')}{_OTHER_VERSION}"
        )
