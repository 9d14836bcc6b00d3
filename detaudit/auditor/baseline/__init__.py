"""Recordings that outlive their event logs, and the gates that compare runs with them."""
