"""A spreadsheet (zip of XML in one line each), one cell far in differs."""

import zipfile

import net

model = net.train()
rows = "".join(
    f'<row r="{i}"><c r="A{i}"><v>{i}</v></c><c r="B{i}" t="n"><v>{i * 0.5}</v></c></row>' for i in range(1, 200)
)
cell = f'<row r="200"><c r="A200"><v>{net.noisy_score(model)}</v></c></row>'
with zipfile.ZipFile("results.xlsx", "w") as z:
    z.writestr("[Content_Types].xml", '<?xml version="1.0"?><Types/>')
    z.writestr(
        "xl/worksheets/sheet1.xml", f'<?xml version="1.0"?><worksheet><sheetData>{rows}{cell}</sheetData></worksheet>'
    )
