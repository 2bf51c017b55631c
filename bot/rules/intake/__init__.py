"""How a bug report is read: Markdown to blocks, blocks to kinds and roles, words to claims. One
concern a module.
"""
