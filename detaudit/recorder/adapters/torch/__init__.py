"""Hook trainings in torch."""
