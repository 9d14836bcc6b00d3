"""The recorder in its host process: its event log, import hooks, replaced functions, frames and threads."""
