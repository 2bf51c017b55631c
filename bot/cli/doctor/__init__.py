"""`reprise doctor`. Light to import: the command imports the checks when it runs."""
