"""MLflow with a store of files."""

import os

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

import mlflow
import net

mlflow.set_tracking_uri("file:./mlruns")
mlflow.set_experiment("clusters")
with mlflow.start_run():
    mlflow.log_params({"lr": 0.1, "epochs": 3})
    model = net.train(each_epoch=lambda epoch, loss: mlflow.log_metric("loss", loss, step=epoch))
    mlflow.log_metric("test_loss", net.score(model))
    with open("summary.txt", "w") as file:
        file.write(f"loss {net.score(model):.4f}\n")
    mlflow.log_artifact("summary.txt")
