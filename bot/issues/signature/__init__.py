"""What counts as the reported failure: how wording, values and frames are compared. Pure
functions.
"""
