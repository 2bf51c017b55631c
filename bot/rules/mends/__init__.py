"""Small, listed repairs of a reporter's program. Each takes source text and gives new text with the Mend that says what and
why.
"""
