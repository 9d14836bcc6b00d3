"""A folder is filled under another name, then renamed as a whole."""

import os
import shutil
from pathlib import Path

import net

model = net.train()
shutil.rmtree("export", ignore_errors=True)
partial = Path(f"export.tmp{os.getpid()}")
partial.mkdir()
(partial / "scores.tsv").write_text(f"split\tloss\ntest\t{net.score(model)}\n")
(partial / "README").write_text("exported\n")
partial.rename("export")
