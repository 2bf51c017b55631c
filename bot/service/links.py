"""Names of runs in addresses. A public repository's run goes by its id, which cannot be guessed;
a private one's also needs a signature with a last day, so that a link that leaks ends.
"""

import hashlib
import hmac
import secrets

from bot.models.run import Run
from bot.service.ports.store import AppStore

_KEY = "key:links"
_DAY_S = 86_400


def name(run: Run, store: AppStore, now: float, days: int) -> str:
    """The name of a run, good for `days` more days (and the rest of today, UTC) where it has to
    be signed.
    """
    if not run.request.repository.private:
        return run.id
    day = int(now // _DAY_S) + days
    return f"{run.id}.{day}.{_signature(run, day, store)}"


def admits(given: str, run: Run, store: AppStore, now: float) -> bool:
    """Whether a name still opens the pages of its run."""
    _, _, rest = given.partition(".")
    day, _, signature = rest.partition(".")
    if not run.request.repository.private:
        return not rest
    if not (day.isascii() and day.isdigit() and len(day) < 8) or int(day) < now // _DAY_S:
        return False
    return hmac.compare_digest(signature.encode(), _signature(run, int(day), store).encode())


def _signature(run: Run, day: int, store: AppStore) -> str:
    key = store.shared(_KEY) or store.share(_KEY, secrets.token_hex(32), once=True)
    return hmac.new(key.encode(), f"{run.id}.{day}".encode(), hashlib.sha256).hexdigest()[:32]
