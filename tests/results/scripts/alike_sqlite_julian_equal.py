"""A database whose rows have the Julian day and the unix time of SQLite."""

import sqlite3

import net

model = net.train()
with sqlite3.connect("runs.db") as db:
    db.execute(
        "create table if not exists runs (id integer primary key, created_at real default (julianday('now')), updated integer default (unixepoch()), loss real)"
    )
    db.execute("insert into runs (loss) values (?)", (net.score(model),))
