"""The operations of TensorFlow, from a table of its own."""
