"""A zip of CSVs in a tar.gz, with mtimes; one cell differs."""

import io
import tarfile
import time
import zipfile

import net

model = net.train()
inner = io.BytesIO()
with zipfile.ZipFile(inner, "w") as z:
    z.writestr("a/scores.csv", f"fold,score\n1,0.5\n2,{net.noisy_score(model):.6f}\n")
with tarfile.open("bundle.tar.gz", "w:gz") as t:
    info = tarfile.TarInfo("run/results.zip")
    info.size = inner.tell()
    info.mtime = time.time()
    inner.seek(0)
    t.addfile(info, inner)
