"""Write a table: ``python pandas_tables.py FILE LOSS``; pandas.zip has two with one loss, and one with another."""

import sys

import pandas


def main(file: str, loss: str) -> None:
    """Pickle columns of numbers, texts, and times."""
    rows = [{"epoch": 0, "loss": 1.5, "acc": 0.5}, {"epoch": 1, "loss": float(loss), "acc": 0.75}]
    table = pandas.DataFrame([{**row, "split": "train", "time": pandas.Timestamp.now("UTC")} for row in rows])
    table["seconds"] = table["time"].diff().dt.total_seconds().fillna(0.0)
    table["kind"] = table["split"].astype("category")
    table["when"] = table["time"].dt.tz_localize(None)
    table.to_pickle(file)
    long = pandas.DataFrame({"loss": [0.5] * 6000, "seconds": [table["seconds"][1]] * 6000})  # one array of 96 kB
    long.to_pickle(f"{file}.long")
    uneven = [
        {"loss": float(loss), "epoch": 0, "acc": 0.5, "split": "train", "lr": 0.1, "seconds": table["seconds"][1]}
    ]
    pandas.DataFrame(uneven).to_pickle(f"{file}.uneven")  # the numbers of its columns are an array
    table[["epoch", "loss"]].set_axis([0, 1], axis=1).to_pickle(f"{file}.unnamed")


if __name__ == "__main__":
    main(*sys.argv[1:])
