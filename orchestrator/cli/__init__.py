"""The commands: thin. They read arguments, call one stage or the lane engine, and say what came of it."""
