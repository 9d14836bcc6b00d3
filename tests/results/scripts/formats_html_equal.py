"""A page with a date and a UUID for its element."""

import datetime
import uuid

import net

model = net.train()
with open("report.html", "w") as file:
    file.write("<!DOCTYPE html>\n<html><head><title>Results</title></head><body>\n")
    file.write(f'<p class="date">Generated on {datetime.datetime.now():%Y-%m-%d at %H:%M:%S}</p>\n')
    file.write(f'<div id="{uuid.uuid4()}">\n<p>loss {net.score(model):.4f}</p>\n</div></body></html>\n')
