"""Where randomness enters a process: seeds, draws, the system and completion order."""
