"""What every product needs and no product owns: jobs, journals, running, comparing, outside
text.
"""
