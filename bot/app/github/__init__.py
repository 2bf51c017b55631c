"""GitHub as the App sees it: the only package that imports githubkit, and only once the
first request is made.
"""
