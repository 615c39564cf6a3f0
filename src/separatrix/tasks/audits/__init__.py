"""The leak audit: does anything but solving a task beat what the task says a guess may reach?"""

from separatrix.tasks import AUDITED as AUDITED
from separatrix.tasks.audits.run import BOUND as BOUND
from separatrix.tasks.audits.run import Audit as Audit
from separatrix.tasks.audits.run import Row as Row
from separatrix.tasks.audits.run import accuracies as accuracies
from separatrix.tasks.audits.run import audit as audit
from separatrix.tasks.audits.run import audit_texts as audit_texts
from separatrix.tasks.audits.run import legend as legend
from separatrix.tasks.audits.run import outcome as outcome
from separatrix.tasks.audits.run import table as table
