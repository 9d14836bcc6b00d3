"""An MLflow server in memory, which can fail at any request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from detaudit.errors import ExportError
from detaudit.exports import KeptRun, Value


@dataclass
class Stored:
    """A run of the server. ``history`` has each metric that was ever logged."""

    experiment: str
    name: str
    began: int
    tags: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    history: list[Value] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    ended: tuple[str, int] | None = None

    @property
    def metrics(self) -> dict[str, float]:
        return {one.name: one.value for one in sorted(self.history, key=lambda one: (one.step, one.at))}


class FakeServer:
    """See detaudit.exports.Server. ``requests`` counts; request number ``fails`` and those after it fail."""

    def __init__(self) -> None:
        self.experiments: list[str] = []
        self.stored: dict[str, Stored] = {}
        self.created = 0
        self.requests = 0
        self.fails: int | None = None

    def _asked(self) -> None:
        self.requests += 1
        if self.fails is not None and self.requests >= self.fails:
            raise ExportError("cannot send to MLflow at http://x: Connection refused")

    def experiment(self, name: str) -> str:
        self._asked()
        if name not in self.experiments:
            self.experiments.append(name)
        return str(self.experiments.index(name))

    def runs(self, experiment: str, tag: str, value: str) -> list[KeptRun]:
        self._asked()
        return [
            KeptRun(number, dict(one.tags), dict(one.params), one.metrics)
            for number, one in self.stored.items()
            if one.experiment == experiment and one.tags.get(tag) == value
        ]

    def create(self, experiment: str, name: str, at: int, tags: Mapping[str, str]) -> str:
        self._asked()
        number = f"run{self.created}"
        self.created += 1
        self.stored[number] = Stored(experiment, name, at, dict(tags))
        return number

    def log(self, run: str, values: Sequence[Value], params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        self._asked()
        assert len(values) + len(params) + len(tags) <= 1000
        one = self.stored[run]
        assert not {name for name, text in params.items() if one.params.get(name, text) != text}, "MLflow refuses that"
        one.history += values
        one.params |= params
        one.tags |= tags

    def steps(self, run: str, metric: str) -> set[int]:
        self._asked()
        return {one.step for one in self.stored[run].history if one.name == metric}

    def remove_tag(self, run: str, tag: str) -> None:
        self._asked()
        del self.stored[run].tags[tag]

    def end(self, run: str, status: str, at: int) -> None:
        self._asked()
        self.stored[run].ended = status, at

    def delete(self, run: str) -> None:
        self._asked()
        del self.stored[run]

    def write(self, run: str, name: str, text: str) -> None:
        self._asked()
        self.stored[run].files[name] = text

    def address(self, experiment: str, run: str) -> str:
        return f"http://x/#/experiments/{experiment}/runs/{run}"
