"""What TensorFlow's AutoGraph quotes in a message in place of the frames of the code that it made:
where in the user's and the library's own files it was, and the error behind it.
"""

import re

from bot.models.bug import Frame
from bot.rules.intake import frames

_TITLE = "in user code:"
_FRAME = re.compile(
    r"^\s+File \"(?P<path>[^\"\n]{1,500})\", line (?P<line>\d{1,7}), in (?P<function>\S{1,200})"
    r"(?:\s+\*{1,2})?\s*$"
)
_ERROR = re.compile(r"^(?P<indent>\s+)(?:[A-Za-z_][\w.]*: )(?P<message>\S.*)$")


def unfold(message: str) -> tuple[str, tuple[Frame, ...]]:
    """The words of the error behind a message, and the frames quoted before them, outermost first;
    the message as it is, without frames, where it quotes none.
    """
    _, title, rest = message.partition(_TITLE)
    found: list[Frame] = []
    lines = iter(rest.splitlines()) if title else iter(())
    for line in lines:
        if match := _FRAME.match(line):
            code = next(lines, "")
            found.append(frames.frame(match["path"], match["line"], match["function"], code))
        elif found and (error := _ERROR.match(line)):
            indent = error["indent"]
            more = [each.removeprefix(indent) for each in lines if each.startswith(indent)]
            words = "\n".join([error["message"], *more]).strip()
            deeper, inner = unfold(words)
            return deeper, (*found, *inner)
    return message, ()
