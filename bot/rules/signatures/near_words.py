"""Messages that another release of a library may word otherwise: the same words but for their form,
or most of the same words.
"""

from difflib import SequenceMatcher

from bot.rules.signatures import wording

_FEWEST, _MOST, _STEM = 5, 0.7, 4


def same_stems(reported: str, seen: str, own_names: frozenset[str]) -> bool:
    """Whether two messages of some length differ only in the forms of their words ("mismatch",
    "mismatched") and in small words.
    """
    wanted, given = (_tokens(text, own_names) for text in (reported, seen))
    if len(wanted) != len(given) or len(wanted) < _FEWEST:
        return False
    return all(
        one == other or _related(one, other) for one, other in zip(wanted, given, strict=True)
    )


def mostly(reported: str, seen: str, own_names: frozenset[str]) -> bool:
    """Whether most words of a reported message of some length were seen in their order."""
    cores = (wording.core(text) for text in (reported, seen))
    wanted, given = (_tokens(text, own_names) for text in cores)
    matcher = SequenceMatcher(None, wanted, given, autojunk=False)
    met = sum(block.size for block in matcher.get_matching_blocks())
    return len(wanted) >= _FEWEST and met >= _MOST * max(len(wanted), len(given))


def _tokens(text: str, own_names: frozenset[str]) -> list[str]:
    found = wording.tokens(wording.normalise(text, own_names))
    return [token for token in found if token not in wording.FILLERS]


def _related(one: str, other: str) -> bool:
    """Whether two words share their stem. What negates a word stands before it."""
    short, long = sorted((one, other), key=len)
    return short.isalpha() and long.isalpha() and len(short) >= _STEM and long.startswith(short)
