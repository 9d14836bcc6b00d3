"""A report in YAML, with dates as YAML knows them."""

import datetime

import net
import yaml

model = net.train()
with open("report.yml", "w") as file:
    yaml.safe_dump({"finished": datetime.datetime.now(), "test": {"loss": net.score(model)}, "tags": ["a", "b"]}, file)
