"""The loss of a training program, changed so that predictions and targets fit the new one."""
