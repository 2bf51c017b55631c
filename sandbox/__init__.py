"""The hands: run untrusted code and tell the truth about it."""
