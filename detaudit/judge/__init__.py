"""Read from event logs what the figures of a report show."""
