"""Files that ship with the engine: the bundled example issue."""
