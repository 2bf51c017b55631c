"""The seed of a program that has an option for it."""

import re

from bot.kernel.attempt import Script
from bot.kernel.trees import Tree
from bot.program.settings import settings_of, with_value

_SEED = re.compile(r"(?:random_?|manual_?|global_?)?seed|random_state")


def seeded(script: Script, tree: Tree, seed: int) -> Script | None:
    """The program with another seed by its own option; None where it has none."""
    for settings in settings_of(script, tree):
        for setting in settings:
            if _SEED.fullmatch(setting.plain) and not setting.option.is_switch:
                return with_value(script, tree, setting, str(seed), "another seed")
    return None
