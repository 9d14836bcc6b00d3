"""Compare two environments: the packages of each, environments that are built of requirements, and runs in turn."""
