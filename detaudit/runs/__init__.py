"""What a run left behind, read back as facts: event logs, printed losses, files, settings, environment."""
