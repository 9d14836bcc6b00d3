"""The operations of torch, with samples from its own database."""
