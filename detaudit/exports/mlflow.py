"""Sends audits to an MLflow server: a run for each audit, and one nested in it for each run of the script."""

import hashlib
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TypeVar

from detaudit.errors import UsageError
from detaudit.exports import KeptRun, Server, Value
from detaudit.model import Status
from detaudit.report.groups import seconds
from detaudit.report.tracked import IN_ARTIFACTS, TrackedAudit, TrackedRun

T = TypeVar("T")

_PREFIX = "detaudit."
_ID, _RUN, _NOTE = f"{_PREFIX}id", f"{_PREFIX}run", f"{_PREFIX}note"
_DESCRIPTION = "mlflow.note.content"
"""The tag that MLflow shows above a run, and lets people edit. ``_NOTE`` has the digest of what was sent."""

_PARENT = "mlflow.parentRunId"
_SOURCE = {"mlflow.source.name": "detaudit", "mlflow.source.type": "LOCAL"}
_ENDS = {Status.OK: "FINISHED", Status.ENDED: "FINISHED", Status.STOPPED: "KILLED"}
"""MLflow's word for how a run ended; any other one failed."""

MOST_VALUES, MOST_WORDS = 800, 100
"""Metrics in one request, and parameters and tags: MLflow takes 1,000 in all, and 100 of either."""

MOST_IN_TAG, MOST_IN_PARAM = 5000, 500
"""Characters, as many as every version of MLflow takes."""


def destination(tracking_uri: str) -> "MLflow":
    """See cli/report.py; ``tracking_uri`` is a tracking URI, by default that of MLflow's own variable."""
    uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        raise UsageError(
            "--to mlflow does not name a server",
            "Name one, as in --to mlflow:http://127.0.0.1:5000, or set MLFLOW_TRACKING_URI.",
        )
    from detaudit.exports.mlflow_server import connect  # MLflow may not be installed

    return MLflow(connect(uri))


class MLflow:
    """An MLflow server. What it has of an audit already is found by the audit's ID, and completed."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def send(self, audits: Sequence[TrackedAudit], documents: Mapping[str, str]) -> list[str]:
        """See Destination.send."""
        return [self._send(audit, documents) for audit in audits]

    def _send(self, audit: TrackedAudit, documents: Mapping[str, str]) -> str:
        server = self._server
        experiment = server.experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME") or audit.script)
        began = round(1000 * (seconds(audit.started) or time.time()))
        kept = next(iter(server.runs(experiment, _ID, audit.id)), None)
        run = kept.id if kept is not None else server.create(experiment, audit.name, began, {_ID: audit.id, **_SOURCE})
        tags = {_ID: audit.id, **_prefixed(audit.tags), **_description(audit.note, kept)}
        self._complete(run, kept, audit.params, tags, _values(audit.metrics, kept, began))
        self._send_runs(experiment, run, audit, began)
        for name, text in documents.items():
            server.write(run, name, text)
        took = audit.metrics.get("duration_s", sum(one.seconds for one in audit.runs))
        server.end(run, "KILLED" if audit.interrupted else "FINISHED", began + round(1000 * took))
        return server.address(experiment, run)

    def _send_runs(self, experiment: str, parent: str, audit: TrackedAudit, began: int) -> None:
        """Send runs in their order, and delete those that the audit had when it was sent before, and has no more."""
        kept = {one.tags[_RUN]: one for one in self._server.runs(experiment, _PARENT, parent) if _RUN in one.tags}
        for index, run in enumerate(audit.runs):
            self._send_run(experiment, parent, run, kept.pop(run.key, None), began + index)
        for gone in kept.values():
            self._server.delete(gone.id)

    def _send_run(self, experiment: str, parent: str, run: TrackedRun, kept: KeptRun | None, began: int) -> None:
        server = self._server
        named = {_PARENT: parent, _RUN: run.key, **_SOURCE}
        own = kept.id if kept is not None else server.create(experiment, run.name, began, named)
        values = list(_values(run.metrics, kept, began))
        for name, points in run.curves.items():
            known = server.steps(own, name) if kept is not None else set()
            values += [Value(name, value, step, began) for step, value in points if step not in known]
        self._complete(own, kept, run.params, {**named, **_prefixed(run.tags)}, values)
        server.end(own, _ENDS.get(run.status, "FAILED"), began + round(1000 * run.seconds))

    def _complete(
        self,
        run: str,
        kept: KeptRun | None,
        params: Mapping[str, str],
        tags: Mapping[str, str],
        values: Iterable[Value],
    ) -> None:
        """Log what the server does not have, and remove the tags that no longer hold. A parameter never changes."""
        known = kept.params if kept is not None else {}
        new = {name: text[:MOST_IN_PARAM] for name, text in params.items() if name not in known}
        for batch in batches(values, new, {name: text[:MOST_IN_TAG] for name, text in tags.items()}):
            self._server.log(run, *batch)
        for tag in kept.tags if kept is not None else ():
            if tag.startswith(_PREFIX) and tag not in tags and tag != _NOTE:
                self._server.remove_tag(run, tag)


def batches(
    values: Iterable[Value], params: Mapping[str, str], tags: Mapping[str, str]
) -> Iterator[tuple[list[Value], dict[str, str], dict[str, str]]]:
    """Yield values, parameters and tags as requests take them."""
    parts = (
        _split(values, MOST_VALUES),
        _split(params.items(), MOST_WORDS),
        _split(tags.items(), MOST_WORDS),
    )
    for some, own, named in zip_longest(*parts):
        yield some or [], dict(own or ()), dict(named or ())


def _split(items: Iterable[T], most: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, most)):
        yield batch


def _values(metrics: Mapping[str, float], kept: KeptRun | None, began: int) -> Iterator[Value]:
    """Yield the metrics that changed. The latest one counts, so what replaces another has the time of now."""
    known = kept.metrics if kept is not None else {}
    for name, value in metrics.items():
        if name not in known:
            yield Value(name, value, 0, began)
        elif known[name] != value and not (math.isnan(value) and math.isnan(known[name])):
            yield Value(name, value, 0, round(1000 * time.time()))


def _prefixed(tags: Mapping[str, str]) -> dict[str, str]:
    return {_PREFIX + name: text for name, text in tags.items()}


def _description(note: str, kept: KeptRun | None) -> dict[str, str]:
    """Return the description of a run and its digest; none if somebody edited it since."""
    shown = kept.tags.get(_DESCRIPTION) if kept is not None else None
    if kept is not None and shown and kept.tags.get(_NOTE) != _digest(shown):
        return {}
    if len(note) > MOST_IN_TAG:
        blocks = note[: MOST_IN_TAG - len(IN_ARTIFACTS) - 10].rpartition("\n\n")[0]
        fence = "\n```" * (blocks.count("\n```") % 2)
        note = f"{blocks}{fence}\n\n{IN_ARTIFACTS}"
    return {_DESCRIPTION: note, _NOTE: _digest(note)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]
