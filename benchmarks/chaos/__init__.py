"""One fault after the other under a whole App: what is seen, what people see, what is lost."""
