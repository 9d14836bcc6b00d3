"""Callbacks for trainers. Each module imports its own trainer; outside an audit, the callbacks do nothing.

An audit records the steps of these trainers without a callback. With one, it also compares the full state of the model
once per epoch (including batch normalization statistics, which no optimizer updates) and the validation loss.
"""
