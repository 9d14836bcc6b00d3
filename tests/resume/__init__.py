"""Trainings that lose one thing when they are resumed, and controls that lose nothing."""
