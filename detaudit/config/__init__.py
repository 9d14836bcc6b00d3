"""Flags, recipes (named sets of flags with a seed), variations, and the audits of a project."""
