"""Repeats single operations of a framework on the same inputs, in a process of the user's Python.

``detaudit ops`` starts it; only the standard library and the framework are imported. It writes what each repetition
returned, as digests, and decides nothing.
"""
