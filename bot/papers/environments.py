"""What a program of a paper needs: what the files of its tree ask for, and what it imports."""

from datetime import datetime

from bot.environment import specify, tree_requirements
from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.environment import DeclaredDependencies, EnvironmentSpec
from bot.kernel.job import EnvironmentOptions
from bot.kernel.trees import Tree
from bot.papers.repository import readme_of


def declared_by(tree: Tree, script: Script) -> DeclaredDependencies:
    """What the files of a tree ask for."""
    return tree_requirements.for_program(tree, script, readme_of(tree))


def specified(
    script: Script,
    tree: Tree,
    options: EnvironmentOptions,
    declared: DeclaredDependencies,
    at: datetime | None,
) -> EnvironmentSpec:
    """The environment for a program of a tree, as of a day; with the repository where there is
    one.
    """
    source = tree_programs.imports((script,), tree, optional=not declared.requirements)
    spec = specify.for_program(options, source, declared, at)
    return specify.in_place(spec, options) if options.repo else spec
