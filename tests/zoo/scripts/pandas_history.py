"""A history as a table of pandas, printed and kept as CSV, JSON and pickle."""

import time

import net
import pandas

rows = []
net.train(each_epoch=lambda epoch, loss: rows.append({"epoch": epoch, "loss": loss, "time": pandas.Timestamp.now()}))
table = pandas.DataFrame(rows)
table["seconds"] = table["time"].diff().dt.total_seconds().fillna(0.0)
print(table.to_string())
table.to_csv("history.csv")
table.to_json("history.json", orient="records", date_format="iso")
table.to_pickle("history.pkl")
print(time.strftime("%X"))
