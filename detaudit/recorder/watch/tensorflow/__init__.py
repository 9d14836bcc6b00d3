"""Record the operations of TensorFlow."""
