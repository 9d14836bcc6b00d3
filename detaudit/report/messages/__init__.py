"""The sentences of all reports: one module for each topic, which turns the facts of the model into words.

Other parts of detaudit compare and store facts, never sentences, so every wording here is free to change.
"""
