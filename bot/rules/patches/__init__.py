"""What a small change of a failing program may do: leave the operation in place, and take away the cause, not the symptom."""
