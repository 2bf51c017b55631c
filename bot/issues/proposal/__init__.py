"""From a reproduced report to what is proposed to the repository: a regression test, a
proven patch.
"""
