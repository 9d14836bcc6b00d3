"""Callbacks for those who train through a trainer; each module needs its own, and outside an audit does nothing.

An audit sees the steps of these trainers without any callback. With one it also compares, once an epoch, all that the
model holds (statistics of batch normalisation too, which no optimizer updates) and the loss of the validation.
"""
