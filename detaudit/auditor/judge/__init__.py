"""What runs show: where they first differ, what a run and a group come to, how much matching runs prove."""
