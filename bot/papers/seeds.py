"""The seed of a program that has an option for it."""

import re

from bot.kernel.attempt import Script
from bot.kernel.trees import Tree
from bot.program.settings import settings_of, with_value

_SEED = re.compile(r"(?:random_?|manual_?|global_?)?seed|random_state")


def seeded(script: Script, tree: Tree, number: int) -> Script:
    """The program with a further seed, the `number`-th from its own, by the option that it has for
    it; the very program where it has none, or for number 0.
    """
    if not number:
        return script
    for settings in settings_of(script, tree):
        for setting in settings:
            if _SEED.fullmatch(setting.plain) and not setting.option.is_switch:
                own = int(setting.value) if setting.value.isdecimal() else 0
                return with_value(script, tree, setting, str(own + number), "another seed")
    return script
