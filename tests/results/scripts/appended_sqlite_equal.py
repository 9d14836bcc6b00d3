"""Rows in a database of experiments: a number counts on, and a clock goes on."""

import sqlite3

import net

model = net.train()
with sqlite3.connect("experiments.db") as db:
    db.execute(
        "CREATE TABLE IF NOT EXISTS results "
        "(id INTEGER PRIMARY KEY, created_at TEXT DEFAULT CURRENT_TIMESTAMP, model TEXT, loss REAL)"
    )
    db.execute("INSERT INTO results (model, loss) VALUES (?, ?)", ("mlp", net.score(model)))
db.close()
