"""What would be run for a report, before anything is: read off the report alone, so that it can
be shown and approved.
"""

import hashlib

from bot.models.attempt import Script
from bot.models.base import Record
from bot.models.bug import BugReport
from bot.models.environment import EnvironmentSpec
from bot.models.report import AnyVerdict
from bot.models.signature import AnySignature, signature_hash


class RunPlan(Record):
    """The plan of a job. With a `verdict` nothing is run; otherwise `script` is the first
    program to try, `others` follow. `self_made`: the report's program brings its failure about
    by itself.
    """

    bug: BugReport
    signature: AnySignature | None = None
    script: Script | None = None
    others: tuple[Script, ...] = ()
    spec: EnvironmentSpec | None = None
    verdict: AnyVerdict | None = None
    self_made: bool = False

    @property
    def scripts(self) -> tuple[Script, ...]:
        """The programs in the order in which they will be tried."""
        return (self.script, *self.others) if self.script is not None else ()

    @property
    def hash(self) -> str:
        """SHA-256 over all that an approval is given to: what counts, the programs, the
        environment.
        """
        parts = [
            signature_hash(self.signature) if self.signature is not None else "",
            *(script.digest for script in self.scripts),
            self.spec.model_dump_json() if self.spec is not None else "",
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()
