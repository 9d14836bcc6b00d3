"""Evidence: one archive of an audit that can be kept for years, and checked."""
