"""Outside text made safe to show: sanitising, clipping and redaction. Every room may use it."""
