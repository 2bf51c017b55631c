"""GitHub as the App sees it: the only package that imports githubkit, and only once the first request is made."""

from bot.adapters.hub.hub import Hub

__all__ = ["Hub"]
