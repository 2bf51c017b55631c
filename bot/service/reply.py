"""The one reply and the one reaction to a comment, whatever its commands were."""

from bot.service import access, publish
from bot.service.app_context import IssueEvent
from bot.service.ports.github import Reaction
from bot.service.ports.store import OurComment

_MOST_REPLIES = 20  # a day, to one person in one repository
_ORDER: tuple[Reaction | None, ...] = (None, "+1", "eyes", "confused")


class Reply:
    """Collects answers to one comment; `send` posts them."""

    def __init__(self, event: IssueEvent) -> None:
        self._context, self._delivery = event.context, event.delivery
        self._where, self._number = event.target, event.number
        self._answers: list[str] = []
        self._reaction: Reaction | None = None

    def say(self, text: str, reaction: Reaction) -> None:
        """Add an answer, once."""
        if text not in self._answers:
            self._answers.append(text)
        self.react(reaction)

    def react(self, reaction: Reaction) -> None:
        """Set the reaction: "confused" outweighs "eyes", "eyes" outweighs "+1"."""
        self._reaction = max(self._reaction, reaction, key=_ORDER.index)

    def once_a_day(self, topic: str, text: str, reaction: Reaction) -> None:
        """Add an answer that one person gets once a day; after that only the reaction."""
        if self._among_first(1, topic):
            self.say(text, reaction)
        self.react(reaction)

    def send(self) -> None:
        """Post the answers as one comment, then the reaction. People without write permission
        get a limited number of comments a day.
        """
        if self._answers and (
            self._among_first(_MOST_REPLIES, "replies")
            or access.writes(self._context, self._where, self._delivery.sender)
        ):
            text, key = "\n\n".join(self._answers), f"reply:{self._delivery.guid}"
            publish.reply(self._context, self._where, self._number, key, text)
        if self._reaction is not None:
            comment = self._delivery.comment
            self._context.github.react(self._where, self._number, comment, self._reaction)

    def _among_first(self, most: int, topic: str) -> bool:
        """Whether this comment is one of the first that its sender wrote today about a topic. The
        count is stored under an issue number that no issue has.
        """
        key = f"{topic}:{self._delivery.sender}:{self._context.day():%Y-%m-%d}"
        where, guid = self._where.repository, self._delivery.guid
        known = self._context.store.comment(where, 0, key)
        count = known.comment if known is not None else 0
        if known is not None and known.digest == guid:
            return True
        if count >= most:
            return False
        self._context.store.put_comment(
            OurComment(repository=where, number=0, key=key, comment=count + 1, digest=guid)
        )
        return True
