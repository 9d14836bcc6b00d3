"""Runs on other machines: what is to be run, one run of it anywhere, and the report of what came back."""
