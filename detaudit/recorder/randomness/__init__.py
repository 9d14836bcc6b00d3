"""Record what makes a process random: seeds, draws, entropy, directory listings and completion order."""
