"""A curve as SVG, with a date in its metadata, as Matplotlib writes it."""

import datetime

import net

points = []
net.train(each_epoch=lambda epoch, loss: points.append(f"{epoch * 100},{loss * 100:.3f}"))
with open("loss.svg", "w") as file:
    file.write(
        '<?xml version="1.0" encoding="utf-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="400" height="200">\n'
    )
    file.write(
        '<metadata><rdf:RDF xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:cc="http://creativecommons.org/ns#" '
    )
    file.write('xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n<cc:Work>\n')
    file.write(f"<dc:date>{datetime.datetime.now().isoformat()}</dc:date>\n</cc:Work></rdf:RDF></metadata>\n")
    file.write(f'<polyline points="{" ".join(points)}" fill="none" stroke="blue"/>\n</svg>\n')
