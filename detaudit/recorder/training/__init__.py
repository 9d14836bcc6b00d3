"""What a training step is made of: digests, weights, losses and random generators."""
