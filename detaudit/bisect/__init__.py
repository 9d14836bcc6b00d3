"""Find a minimal set of flags that fixes a training, or of variations that change it."""
