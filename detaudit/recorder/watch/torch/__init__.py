"""Record the operations of torch."""
