"""Faults injected into real audits, and what must hold after each."""
