"""What only a GPU can show, ready to run on one: ``make test-gpu``. ``DEVICE=cpu`` runs every script of it without."""
