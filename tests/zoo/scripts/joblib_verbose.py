"""joblib.Parallel, verbose, with threads."""

import joblib
import net

model = net.train()
losses = joblib.Parallel(n_jobs=2, verbose=10, prefer="threads")(joblib.delayed(net.score)(model) for _ in range(12))
print(f"mean loss {sum(losses) / 12:.4f}")
