"""Hook trainings in TensorFlow and Keras."""
