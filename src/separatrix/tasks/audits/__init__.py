"""The leak audit: does anything but solving a task beat what the task says a guess may reach?"""

from separatrix.tasks import AUDITED as AUDITED
from separatrix.tasks.audits.rows import BOUND as BOUND
from separatrix.tasks.audits.rows import Audit as Audit
from separatrix.tasks.audits.rows import Row as Row
from separatrix.tasks.audits.rows import legend as legend
from separatrix.tasks.audits.rows import outcome as outcome
from separatrix.tasks.audits.rows import table as table
from separatrix.tasks.audits.run import accuracies as accuracies
from separatrix.tasks.audits.run import audit as audit
from separatrix.tasks.audits.run import audit_texts as audit_texts
