"""Small, listed changes to a reporter's program: source in, new source and a ScriptFix for each."""
