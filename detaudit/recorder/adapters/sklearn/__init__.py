"""Hook the fits of scikit-learn."""
