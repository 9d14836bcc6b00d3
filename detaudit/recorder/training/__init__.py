"""Record training steps: digests, weights, losses and the states of random generators."""
