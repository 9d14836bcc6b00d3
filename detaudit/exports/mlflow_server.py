"""An MLflow server as its own client reaches it. Nothing is sent to anybody else."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}
"""How long a server may take: by default, MLflow asks one that does not answer for minutes. What is set counts."""

_ALWAYS = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_AGENT_HINT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Without these, MLflow reports its use to its makers, and prints lines of its own, such as one for each run."""

os.environ.update({**_DEFAULTS, **os.environ, **_ALWAYS})  # before it is imported

from mlflow import MlflowClient, set_tracking_uri  # noqa: E402
from mlflow.entities import Metric, Param, RunTag, ViewType  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402

from detaudit.errors import ExportError, UsageError  # noqa: E402
from detaudit.exports import KeptRun, Value  # noqa: E402

_PAGE = 1000
_OF_TRAINING = {"mlflow.experimentKind": "custom_model_development"}
"""Makes MLflow 3 open an experiment with its runs and their curves."""

_MOST_SHOWN = 300
"""Characters of an error."""

_ACCESS = ("CUSTOMER_UNAUTHORIZED", "PERMISSION_DENIED", "UNAUTHENTICATED")


def connect(uri: str) -> "MLflowServer":
    """Return the server with this tracking URI. Raises UsageError if MLflow cannot use it."""
    for name in ("mlflow", "urllib3"):
        logging.getLogger(name).setLevel(logging.ERROR)  # each retry would be a line on stderr
    try:
        return MLflowServer(MlflowClient(tracking_uri=uri), uri)
    except (MlflowException, OSError, ImportError) as error:  # a database asks for more than the client
        server = "Name a server, as in --to mlflow:http://127.0.0.1:5000."
        hint = "Run `pip install mlflow`, which has all of MLflow." if isinstance(error, ImportError) else server
        raise UsageError(f"--to mlflow cannot use {uri}: {_reason(error)}", hint) from error


class MLflowServer:
    """See detaudit.exports.Server."""

    def __init__(self, client: MlflowClient, uri: str) -> None:
        self._client, self._uri = client, uri

    def experiment(self, name: str) -> str:
        """See Server.experiment. Raises ExportError if it was deleted."""
        with self._errors():
            existing = self._client.get_experiment_by_name(name)
            if existing is None:
                return str(self._client.create_experiment(name, tags=_OF_TRAINING))
        if existing.lifecycle_stage == "deleted":
            raise ExportError(
                f"the experiment {name} was deleted in MLflow",
                "Restore it with `mlflow experiments restore`, or set MLFLOW_EXPERIMENT_NAME.",
            )
        return str(existing.experiment_id)

    def runs(self, experiment: str, tag: str, value: str) -> list[KeptRun]:
        """See Server.runs."""
        kept_runs: list[KeptRun] = []
        query, token = f"tags.`{tag}` = '{value}'", None
        while True:
            with self._errors():
                page = self._client.search_runs([experiment], query, ViewType.ACTIVE_ONLY, _PAGE, page_token=token)
            kept_runs += [KeptRun(one.info.run_id, one.data.tags, one.data.params, one.data.metrics) for one in page]
            token = page.token
            if not token:
                return kept_runs

    def create(self, experiment: str, name: str, at: int, tags: Mapping[str, str]) -> str:
        """See Server.create."""
        with self._errors():
            return str(self._client.create_run(experiment, at, dict(tags), name).info.run_id)

    def log(self, run: str, values: Sequence[Value], params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """See Server.log."""
        with self._errors():
            self._client.log_batch(
                run,
                metrics=[Metric(one.name, one.value, one.at, one.step) for one in values],
                params=[Param(name, text) for name, text in params.items()],
                tags=[RunTag(name, text) for name, text in tags.items()],
            )

    def steps(self, run: str, metric: str) -> set[int]:
        """See Server.steps."""
        with self._errors():
            return {one.step for one in self._client.get_metric_history(run, metric)}

    def remove_tag(self, run: str, tag: str) -> None:
        """See Server.remove_tag."""
        with self._errors():
            self._client.delete_tag(run, tag)

    def end(self, run: str, status: str, at: int) -> None:
        """See Server.end."""
        with self._errors():
            self._client.set_terminated(run, status, at)

    def delete(self, run: str) -> None:
        """See Server.delete."""
        with self._errors():
            self._client.delete_run(run)

    def write(self, run: str, name: str, text: str) -> None:
        """See Server.write."""
        with self._errors():
            set_tracking_uri(self._uri)  # MLflow 2 asks for it, whatever the client's own
            self._client.log_text(run, text, name)

    def address(self, experiment: str, run: str) -> str:
        """See Server.address."""
        if self._uri.startswith(("http://", "https://")):
            return f"{self._uri.rstrip('/')}/#/experiments/{experiment}/runs/{run}"
        return f"{self._uri}, experiment {experiment}, run {run}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (MlflowException, OSError, ImportError) as error:
            message = f"cannot send to MLflow at {self._uri}: {_reason(error)}"
            raise ExportError(message, _hint(error)) from error


def _root(error: BaseException) -> BaseException:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return error


def _reason(error: BaseException) -> str:
    """Return why something failed, without the exceptions that were wrapped around it."""
    root = _root(error)
    text = (root.strerror if isinstance(root, OSError) else None) or str(root) or type(root).__name__
    return " ".join(text.split())[:_MOST_SHOWN]


def _hint(error: BaseException) -> str:
    if isinstance(error, MlflowException) and error.error_code in _ACCESS:
        return "Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."
    return "Run the command again when it can be reached: what it has by then is kept, and the rest is added."
