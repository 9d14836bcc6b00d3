"""Rows in a database of experiments."""

import sqlite3

import net

model = net.train()
with sqlite3.connect("experiments.db") as db:
    db.execute("CREATE TABLE IF NOT EXISTS results (id INTEGER PRIMARY KEY, model TEXT, loss REAL)")
    db.execute("INSERT INTO results (model, loss) VALUES (?, ?)", ("mlp", net.noisy_score(model)))
db.close()
