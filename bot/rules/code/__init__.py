"""Reading Python sources without running them: words, outlines, names, calls and training loops."""
