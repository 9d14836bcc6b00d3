"""A report as PDF, with the date of its creation."""

import datetime

import net

model = net.train()
text = f"BT /F1 12 Tf 20 100 Td (loss {net.score(model):.4f}) Tj ET"
objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R "
    "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
    f"<< /Length {len(text)} >>\nstream\n{text}\nendstream",
    f"<< /Producer (report.py) /CreationDate (D:{datetime.datetime.now():%Y%m%d%H%M%S}Z) >>",
]
out, offsets = "%PDF-1.4\n", []
for number, body in enumerate(objects, 1):
    offsets.append(len(out))
    out += f"{number} 0 obj\n{body}\nendobj\n"
table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
out += f"xref\n0 6\n0000000000 65535 f \n{table}trailer\n<< /Size 6 /Root 1 0 R /Info 5 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
with open("report.pdf", "w", newline="\n") as file:
    file.write(out)
