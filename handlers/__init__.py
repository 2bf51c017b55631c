"""The ear: GitHub events in, jobs out. Answers at once and never thinks."""
