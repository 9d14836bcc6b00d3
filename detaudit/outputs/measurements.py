"""Decide whether a value is a result, a measurement or an identifier, by its name and by itself together.

A name is read as English compounds are: its last word that says a quantity is the head (``mean_fit_time``: time), words
before it say whose (``arrival_time``), and after ``per``, ``of`` or ``to`` too. A head that a clock or a meter has is a
measurement if all that it is said to be of belongs to a computation, and a result if it belongs to the data or the
model; of what is neither known nor ruled out, nobody can say. And the value must be one that a clock or a meter of this
run can show.
"""

import calendar
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from functools import lru_cache

from detaudit.model.outputs import Role, RunFacts


def _and_plurals(text: str) -> frozenset[str]:
    return _words(text) | {f"{word}s" for word in _words(text) if len(word) > 3}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Heads: what a clock or a meter shows.
_CLOCK = _words(
    "tottime cumtime percall utime stime"
    " time times timing timings timer timers elapsed runtime runtimes walltime wallclock wall clock latency latencies"
    " duration durations dur took takes spent uptime ttft tpot itl e2el stopwatch timedelta cputime usertime"
    " realtime cputimes cput zeit dauer laufzeit trainingszeit trainingsdauer gesamtzeit gesamtdauer rechenzeit"
    " verstrichen vergangen durée duree écoulé écoulée tiempo duración duracion transcurrido duração"
    " время продолжительность süre süresi czas"
)
_ALONE = _words("time times duration durations")  # without another word, they may also be a column of the data
_ESTIMATE = _words("eta remaining etc")  # of a time that is still to come: it may be longer than the run
_PROCESSED = _words(
    "paths traces reads bars toks ess sims games sent sents gens draws docs rays volumes evals likelihood inferences"
    " sweeps props nodes rollouts patients subjects candidates permutations ticks genomes molecules voxels"
)
"""What a program does so many of in a second, which may be whose quantity it is elsewhere."""

_ONE_PROCESSED = frozenset(word.removesuffix("s") for word in _PROCESSED)

_RATE = _words(
    "throughput speedup rtf fps qps ips wps tps ups sps its bandwidth gbps mbps tflops gflops mflops mfu hfu"
    " tokenspersecond gbs mbs algbw busbw xrt"
)
_MEMORY = _words(
    "memory mem cpumem gpumem ram vram rss vms uss pss hbm hwm swap footprint maxrss"
    " speicher arbeitsspeicher speicherverbrauch speicherbedarf memoria mémoire"
)
_METER = _words(  # of the machine; alone, most of these are no quantity of a training
    "util utilization utilisation watts watt kwh wh joules rpm emissions co2 loadavg"
)
_ALSO_OF_DATA = _words("bandwidth watts watt kwh wh joules rpm emissions co2")
"""What a machine and data have alike: of a kernel density, a power grid, a motor."""

_ALSO_STATISTICS = _words("ips swap pss uss hwm vms disk footprint")
"""What has other meanings if nothing says whose it is: a propensity score, an interest rate, a scale of stress."""

_COUNTED_BY_MACHINE = _words("minflt majflt nvcsw nivcsw inblock oublock")  # of getrusage
_DATE = _words(
    "date dates datetime datetimes timestamp timestamps mtime ctime atime created modified updated started finished"
    " ended saved generated completed exported begun ts"
)
_NUMBER_OF_RUN = _words("pid pids ppid tid tids thread threads port ports lwp process processes")
"""What is followed by a number that only stands for this run."""

_LEAST_PORT = 1024
"""From here on, programs get a port without a privilege; smaller ones are of services, or of ships."""

_COUNTED_OF_RUN = _words("threads processes ports")
"""How many there are is a count, as in ``processes_flagged``."""

_MONITORS = _words("system monitor monitoring resource resources psutil usage utilization")
"""What a file of the state of a machine is called."""

UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "usecs", "micros", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(
        ("sek", "sekunde", "sekunden", "seconden", "seconde", "secondes", "segundo", "segundos", "secondi"), 1.0
    ),
    **dict.fromkeys(("\u0441", "сек", "sn"), 1.0),
    **dict.fromkeys(("minuten", "minuto", "minutos"), 60.0),
    **dict.fromkeys(("stunde", "stunden", "heure", "heures", "hora", "horas"), 3600.0),
    "秒": 1.0,
    "초": 1.0,
    "毫秒": 1e-3,
    "微秒": 1e-6,
    "分钟": 60.0,
    "分鐘": 60.0,
    "분": 60.0,
    "小时": 3600.0,
    "小時": 3600.0,
    "時間": 3600.0,
}
"""Units of time, in seconds."""

_SHORT_UNITS = _words(
    "s h d m min mins minute minutes hr hrs hour hours day days"
)  # they need a word for a time, or a computation, before them
_WITHOUT_TIME = _words("loss score scoring gradient gradients grad")
"""What takes no time that is named after it without a word for one."""

_MACHINE_UNITS = _words("C °C W mW kW Wh kWh MHz GHz")
_BYTES = _words("b byte bytes kb kib mb mib gb gib tb tib")

# What says nothing about whose a quantity is.
_NEUTRAL = _words(
    "self "
    "mean avg average std stdev stddev var median total sum cum cumulative min max minimum maximum minimal maximal"
    " peak last current overall each all value values val number p p1 p5 p25 p50 p75 p90 p95 p99 percentile quantile"
    " q iqr sd se ms s sec is was the a an of at in on for to by this that and or so far taken spent passed used usage"
    " elapsed consumed needed cost approx approximate about estimated rel abs real raw smoothed ema running inst"
    " instant instantaneous tensor array np numpy float float32 float64 int item scalar secs seconds first"
    " since per with percent pct percentage ratio allocated reserved free available cached active inactive start end"
    " metric metrics stats stat info list breakdown factor history log logs results result summary perf performance"
    " de del du des la le pure only steady"
    " draw drawn effective repr table tables global curr histogram hist distribution percentiles quantiles"
)

# A computation and what runs it: a time, a rate or memory of these was measured.
_OF_RUNS = _words(
    "train training trained trainer val valid validation validate eval evaluation evaluate test testing tests fit"
    " fitting fits score scoring predict prediction predictions inference infer epoch epochs ep step steps iter iters"
    " iteration iterations it its batch batches minibatch data load loading loader dataloader dataloading dataset"
    " preprocess preprocessing preprocessor postprocess postprocessing process processing forward backward fwd bwd"
    " optimizer optim opt update updates compile compilation compiling jit startup init initialization setup warmup"
    " build building wall clock cpu gpu gpus cuda device devices host user sys system thread proc run running runs"
    " execution exec execute compute computation calculate kernel kernels comm communication allreduce sync io read"
    " reading write writing save saving saved checkpoint checkpoints ckpt started ended finish finished begin began"
    " now local utc creation created modified refit search tuning tune trial trials generation generate decode"
    " decoding encode encoding tokenize tokenization tokenizer sample samples sampling rollout rollouts env episode"
    " episodes collect collection learn learning gradient gradients grad loss callback callbacks hook logging log idle"
    " wait download downloading upload import imports function func call calls op ops restore remaining left request"
    " requests token tokens tok profile profiler benchmark bench speed job jobs script program main session worker"
    " workers rank node prefill block layer layers conv attention attn matmul gemm model models image images img imgs"
    " example examples ex record records row rows sentence sentences word words seq sequences frame frames item items"
    " sequence instance instances graph graphs edge edges point points file files feature features bytes byte mb gb kb"
    " mib gib tb b kib tib flops flop tflop gflop transition transitions query queries prompt completion action"
    " kimg kimgs ru phases stages sections reset fold folds cv split split0 split1 split2 phase stage section task"
    " tasks interval round rounds microstep kit mit git"
    " wallclock time timing timer resource resources peak nvml smi physical virtual resident stepping pre post"
    " gc garbage cell notebook experiment pipeline transform augmentation collate transfer h2d d2h h d copy torch"
    " tf jax python pytorch loop inner outer sanity check fetch prefetch queue get put one single"
    " date day tick full memory throughput latency wandb mlflow made written meta metadata tensorflow"
    " solve solves solving solver solvers entraînement entrenamiento inférence inferencia ejecución ejecucion exécution"
    " esecuzione addestramento inferenza execução treinamento обучения обучение eğitim treningu uczenia trwania tt"
    " parse parsing indexing search rerank explain explaining export exporting render rendering preproc postproc nms"
    " featurize busy ppo selfplay mcts"
)
_OF_PROGRAMS = _words(
    "étape output outputs synch chunk chunks volume volumes policy actor critic prices line lines net executor jvm"
    " scan scans slice slices patch patches tile tiles doc docs document documents page pages case cases weights ann"
    " open opening backend backends mapping local module function func fn op kernel callable"
)
"""What a program has that takes time too, and of which there is much else: ``weights_min`` is no time."""

# A quantity of the data or the model. It decides, whatever else is in the name.
_OF_DATA = _and_plurals(
    "arrival arrivals departure half life lifetime survival survive event events failure failures death birth born"
    " waiting travel travelled flight reaction delivery decay relaxation lead cycle dwell trip journey ride race lap"
    " game match play screen sleep recovery release publish publication order visit admission discharge follow"
    " cooking charge charging hitting mixing stopping residence integration diffusion simulated simulation sim"
    " horizon forecast forecasted predicted pred preds target targets true expected label labels actual y yhat n num"
    " count many part space delay lag due relevant exposure reverberation attack onset offset spike firing"
    " refractory audio clip video song music speech utterance recording phone treatment surgery hospital"
    " patient disease age doubling extinction repair maintenance production lived stay pickup dropoff"
    " commute traffic wind car vehicle rotor motor engine angular linear sound light ground air water vapor seed"
    " bank replay associative episodic working hidden embedding embeddings emb"
    " series past future historical expiry expiration maturity purchase transaction"
    " invoice payment hire contract season sunrise sunset sun heart pulse respiratory breathing interest"
    " inflation growth mutation crossover dropout hazard incidence prevalence mortality"
    " mae rmse mse mape smape error errors err residual residuals"
    " miles mile km kilometers kilometres meter meters metre metres m cm mm feet ft knots rad radians deg degrees"
    " beats breaths revolutions rotations dollars usd eur liters litres gallons kg grams people vehicles"
    " cars passengers goals spikes photons counts tau roi"
    " headway ttc stride stance oscillation pendulum period balance speaker phoneme note qrs"
    " swing cadence qtc rr hrv evoked conduction synaptic echo settling rise braking overtaking encroachment"
    " acceptance lane pick boundary sprint foraging hydraulic valve macaulay epigenetic transit finishing junction"
    " alarm"
)

_ESTIMATED = _words("bootstrap bootstrapped posterior credible confidence")
_STATISTICS = _words("mean median std sd se var estimate interval ci lower upper low high bias quantile percentile")
"""What is said to be estimated is one of the data if it is one of these, and otherwise a part of a computation."""

_PROCESS_METERS = _words("power energy temperature temp clock fan freq frequency load usage percent pct")
"""What a machine's part has beside its time: ``gpu_power``, ``cpu_percent``; of anything else, these are results."""

_PARTS = _words(
    "cpu cpus gpu gpus cuda ram disk nvml smi core cores system sm hbm pcie nvlink node host psu soc dram vm"
)
_PROCESSORS = _words("gpu gpus cpu cpus cuda nvml nvidia")
_NOT_OF_MACHINES_ALONE = _words("system core cores node host sm soc")
"""Parts that much else has: ``core_temp`` and ``system_load`` may be of a reactor or a grid, ``soc`` of a battery."""

_OF_NETWORK = _words("net network io ib bus link download upload h2d d2h allreduce comm nccl infiniband ethernet")
_SEEDS = _words("seed seeds hash digest checksum md5 sha sha1 sha256 sha512 crc crc32 fingerprint")
_EXTENSIONS = _words(
    "npy npz csv tsv json jsonl txt log pt pth pkl pickle h5 hdf5 yaml yml toml parquet arrow feather gz xz bz2 zip"
    " msgpack safetensors out dat db sqlite"
)
_CLASS_METRICS = _words("iou miou f1 ap map dice jaccard precision recall auc accuracy acc support")
"""What a class of the data has, whatever the class is called: ``iou.wall``."""

_MOMENTS = _words("start starts end ends begin begins stop stops finish")
"""Whose time may be a place in a recording, as ``word_start_time``, unless it is of what only a computation has."""

_ALSO_IN_RECORDINGS = _words(
    "word words sentence sentences token tokens tok frame frames item items row rows record records section sections"
    " sequence sequences seq phase stage segment call calls request requests edge edges point points"
)

_OF_REQUESTS = _words("request requests stage phase section sections")

_LINKS = _words("per vs versus of to for in since until between until_ from during by over after before")
_SPEEDS = _words("speed rate pace velocity dt")
"""Quantities that are a measurement of a computation, and of anything else a result."""
_QUANTITIES = _CLOCK | _ESTIMATE | _RATE | _MEMORY | _METER | _DATE | _BYTES | _SPEEDS | _PROCESS_METERS | UNITS.keys()

_CHOSEN = _words(
    "best worst top selected chosen winner winning predicted recommended cause influential excluded flagged optimal"
)
"""What makes the name or a number of a run a result: ``best_run_name``."""

_OF_FLOWS = _words("src dst source destination")
"""What the two ends of a connection are called in data of networks."""

_NAMES_OF_RUN = _words(
    "cells run session experiment exp job trace span correlation request task worker actor container pod study artifact"
)
_HOSTS = _words("host hostname node nodename machine ip addr address user username cwd pwd tmpdir tempdir")


class _Of(Enum):
    """What a name says of its value."""

    NOTHING = "nothing"
    RESULT = "result"
    DURATION = "duration"
    ESTIMATE = "estimate"
    RATE = "rate"
    AMOUNT = "amount"
    DATE = "date"
    NUMBER = "number of the run"
    NAME = "name of the run"


_TIMED = (_Of.DURATION, _Of.ESTIMATE, _Of.RATE)
"""What is the same in all runs if the clock counts its readings, unless some other clock measured it."""

_NO_UNIT = (1.0, 1e-3)
"""What a duration may be in if its name does not say; whole numbers may count smaller units."""


@dataclass(frozen=True)
class Meaning:
    """What a name says: of what, whether that is sure, and the units in seconds that its value may have.

    ``of_data``: it is of the data or the model, whatever its unit. ``by_parent``: only what is above it says so, and
    whole numbers are counts (``time/iterations``). ``alone``: nothing says whose time it is. ``summed``: over threads
    or workers. ``least``: the smallest number that may be one of the run.
    """

    of: _Of
    sure: bool = True
    by_parent: bool = False
    of_data: bool = False
    units: tuple[float, ...] = _NO_UNIT
    alone: bool = False
    summed: bool = False
    least: int = 0

    @property
    def is_result(self) -> bool:
        """Whether a value of this name is a result, whatever it is."""
        return self.of is _Of.RESULT

    @property
    def is_measured(self) -> bool:
        """Whether it is a time, a rate, or what a machine has of, though a value may show that it is not."""
        return self.of in (_Of.DURATION, _Of.RATE, _Of.AMOUNT)

    @property
    def is_name(self) -> bool:
        """Whether a value of this name is what a run is called, whatever it is."""
        return self.of is _Of.NAME

    @property
    def is_of_machine(self) -> bool:
        """Whether it is memory, power, or what else a machine has of."""
        return self.of is _Of.AMOUNT

    @property
    def shortest_s(self) -> float:
        """The seconds of one, in its least unit, if a value that is not longer than the run is a measurement."""
        if self.of is not _Of.DURATION or not self.sure or self.by_parent:
            return math.inf
        return max(self.units) if self.alone else min(self.units)


NOTHING, RESULT = Meaning(_Of.NOTHING), Meaning(_Of.RESULT)
_DATA = Meaning(_Of.RESULT, of_data=True)

_LETTERS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"[^\W\d_a-z]+(?=[^\W\d_a-z][a-z])|[^\W\d_a-z]?[a-zµμ]+|[^\W\d_a-z]+")
_TIME_UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
_PER = re.compile(
    rf"(?<=\w)\s?/\s?(?=(?:{_TIME_UNIT})(?![^\W\d_]))|(?<![^\W_])({_TIME_UNIT})\s?/\s?(?=\w)", re.IGNORECASE
)
_IN_SECONDS = re.compile(r"(?<=\w)\s*[(\[](?:s|[Ss]ecs?)[)\]]")
_PARTS_OF_PATH = re.compile(r"[./,:@\\\[\]]+|\s-\s")
_KNOWN = (
    _CLOCK | _ESTIMATE | _RATE | _MEMORY | _METER | _DATE | _BYTES | _NEUTRAL | _OF_RUNS | _OF_DATA | _NUMBER_OF_RUN
    | _OF_PROGRAMS | UNITS.keys() | _words("gpus cpus ids uuids db")
)  # fmt: skip


def words(name: str) -> list[str]:
    """Return the whole words of a name in lower case, split at all that is no letter and within camelCase."""
    lower_words: list[str] = []
    for run in _LETTERS.findall(_DELTA.sub(lambda match: "dt" if match[1] else " ", name)):
        lower = run.lower()
        plural = run[-1] == "s" and run[:-1].isupper()  # of an abbreviation
        if (time := _TIME_OF_CJK.fullmatch(run)) is not None:
            lower_words += [
                *([_WHOSE_OF_CJK.get(time[1], time[1].lower())] if time[1] else []),
                "time" if time[3] else "took",
            ]
        elif quantity := next((word for one, word in _QUANTITIES_OF_CJK.items() if one in run), ""):
            lower_words.append(quantity)
        elif plural and lower in ("fps", "tps", "gflops", "mflops"):
            lower_words.append(lower[:-1])  # FPs are false positives, GFLOPs maybe what a model computes for one input
        elif lower in _KNOWN or run.islower() or plural:
            lower_words.append(lower)
        else:
            lower_words.extend(word.lower() for word in _CAMEL.findall(run))
    return lower_words


_DELTA = re.compile(r"Δ(?:\s?(t)(?![^\W_]))?")
_TIME_OF_CJK = re.compile("(.*?)(?:(耗时|耗時|用时|用時|소요시간)|(时间|時間|时长|時長|시간))")
"""A time in a name of Chinese, Japanese or Korean, which has no blanks."""

_WHOSE_OF_CJK = {
    **dict.fromkeys(("训练", "訓練", "学習", "훈련", "학습"), "training"),
    **dict.fromkeys(("推理", "推論", "추론"), "inference"),
    **dict.fromkeys(("测试", "測試", "验证", "驗證", "评估"), "test"),
    **dict.fromkeys(("运行", "運行", "执行", "執行", "実行", "실행", "处理", "加载", "计算"), "run"),
    **dict.fromkeys(("总", "總", "总共", "平均", "每轮", "累计", "経過", "合計"), "total"),
}

_QUANTITIES_OF_CJK = {
    **dict.fromkeys(("吞吐量", "吞吐率", "スループット", "처리량"), "throughput"),
    **dict.fromkeys(("显存", "顯存", "内存", "記憶體", "メモリ", "메모리"), "memory"),
}

_REACTION = Meaning(_Of.DURATION, sure=False, by_parent=True)
"""Of a runtime or a reaction time, a relaxation time T1, or of customers that wait, also with a unit.

Whole numbers are results.
"""

_ETA = Meaning(_Of.ESTIMATE, sure=False, units=(1.0,))
"""Of what is to come, or a learning rate, which is no more than 1."""

_IDS = (["id"], ["uuid"], ["ident"])


@lru_cache(maxsize=65536)
def meaning_of(name: str) -> Meaning:
    """Return what a name says of its value."""
    text = _PER.sub(lambda match: (match[1] or "") + " per ", name[-400:])
    text = _IN_SECONDS.sub(" seconds ", text)
    parts = [part_words for part in _PARTS_OF_PATH.split(text) if (part_words := words(part))]
    while len(parts) > 1 and len(parts[-1]) == 1 and parts[-1][0] in _EXTENSIONS:
        parts.pop()
    if not parts:
        return NOTHING
    while len(parts) > 1 and _says_nothing(parts[-1]):
        parts[-2:] = [_whose(parts[-2], parts[-1], len(parts) == 2) + parts[-1]]
    if len(parts) > 1 and parts[-1] in _IDS:
        parts[-2:] = [parts[-2] + parts[-1]]
    *parents, key = parts
    for pattern, meaning in _BY_FORM:
        if pattern.search(name):
            return meaning
    above_it = parents[-1] if parents else []
    while len(parents) > 1 and _of_words(parents[-1]).of is _Of.RESULT and _is_of_runs(parents[-1]):
        parents.pop()  # timings.phases.load
    if known := _as_tools_write(parents, key):
        return known
    if parents and set(parents[-1]) & _CLASS_METRICS and len(key) == 1 and key[0] in UNITS.keys() | {"wall", "clock"}:
        return _DATA
    meaning = _of_words(key)
    if meaning.is_name and not _CHOSEN.isdisjoint(above_it):
        return RESULT  # best: run 4
    if meaning.of is _Of.ESTIMATE and above_it and _is_of_runs(above_it):
        return replace(meaning, sure=True)  # iterations[3].remaining_time
    if meaning.alone and not _OF_DATA.isdisjoint(itertools.chain.from_iterable(parents)):
        return replace(meaning, sure=False)  # simulated_cohort.duration
    of_meter = meaning.of is _Of.AMOUNT and not _METER.isdisjoint(key) and _PARTS.isdisjoint(key)
    if len(key) == 1 and key[0] in _ALSO_STATISTICS and (_PARTS | _MONITORS | _QUANTITIES).isdisjoint(above_it):
        return replace(meaning, sure=False)
    if of_meter and parents and _are_unknown(parents[-1]):
        return replace(meaning, sure=False)  # codebook.utilization
    return _by_parent(meaning, key, parents[-1]) if meaning.of is _Of.RESULT and parents else meaning


def _as_tools_write(parents: list[list[str]], key: list[str]) -> Meaning | None:
    """Return the meaning of names that are known from the tools that write them, None if it is none of these."""
    if key == ["time", "left", "passed"]:
        return Meaning(_Of.DURATION, units=(1e-3,))  # time_left.tsv of CatBoost
    if key in (["ts"], ["dur"]) and ["trace", "events"] in parents:
        return Meaning(_Of.DURATION, units=(1e-6,))  # as profilers write what browsers show
    if key == ["threads"] and len(parents) == 1 and not _MONITORS.isdisjoint(parents[0]):
        return Meaning(_Of.AMOUNT)  # a column of system.csv
    if key == ["t"] and any({"ep", "episode", "episodes"} & set(parent) for parent in parents):
        return Meaning(_Of.DURATION)  # since its start: https://gymnasium.farama.org, RecordEpisodeStatistics
    if parents[:1] == [["benchmarks"]] and key[0] == "stats" and all(one in _NEUTRAL | {"ops"} for one in key):
        return Meaning(_Of.DURATION, sure=False)  # https://pytest-benchmark.readthedocs.io
    if parents and parents[-1][-1] in _PROCESSORS and not _PROCESS_METERS.isdisjoint(key[:1]):
        return Meaning(_Of.AMOUNT)  # gpu.temp_c
    return None


_RELAXATION = re.compile(r"(?:^|[\s_])T[0-9]\*?$")
_WILL_END = re.compile(
    r"\b(?:will|would|should|expected to) (?:be )?(?:finish(?:ed)?|end|complete[d]?|done|ready) (?:at|by)$",
    re.IGNORECASE,
)
_EFFECT_SIZE = re.compile(r"(?<![^\W_])eta(?:2|\u00b2|[\s_-]?sq(?:uared)?(?![^\W_]))", re.IGNORECASE)
_BY_FORM = ((_RELAXATION, _REACTION), (_WILL_END, Meaning(_Of.ESTIMATE)), (_EFFECT_SIZE, _DATA))
_OF_PARTS = _words("timings timing timers runtimes")
"""What a group of times is called that has the name of a part of the computation for each."""


def _whose(owner: list[str], key: list[str], is_file: bool) -> list[str]:
    """Return the words of what stands before a key that has no more than a unit or a statistic."""
    if (UNITS.keys() | _BYTES).isdisjoint(key):
        return owner
    if owner[0] in _NAMED_PARTS:
        return owner[:1]  # function augment, self_ms
    if is_file and (key in _SECONDS or not _GENERIC.isdisjoint(owner)):
        return [word for word in owner if word in _KNOWN]  # llm_log.ms
    return owner if key[-1] in _SHORT_UNITS else [word for word in owner if word not in _WITHOUT_TIME]  # loss.seconds


_SECONDS = (["seconds"], ["secs"], ["sec"])
_GENERIC = _words("log logs metrics stats report results summary profile profiling timing timings bench benchmark perf")
"""What a file is called whatever is in it."""

_NAMED_PARTS = _words("function func fn module op operation kernel layer callable")
"""The columns of a table of times that have the names of what took them."""


def _by_parent(meaning: Meaning, key: list[str], parent: list[str]) -> Meaning:
    """Return what a name says that is of a result by itself, below one that may be of a time, a rate or an amount."""
    of_result = not (_WITHOUT_TIME | _CLASS_METRICS).isdisjoint(key)
    above = _of_words(parent)
    if above.of not in (_Of.DURATION, _Of.RATE, _Of.AMOUNT) or (of_result and _QUANTITIES.isdisjoint(parent)):
        return meaning  # gpu/loss: only a part of the machine is above it
    if _is_of_runs(key):  # time/forward
        return replace(above, sure=above.sure and not of_result, by_parent=True)
    if not set(key) & _OF_DATA and len(key) <= 2 and parent != ["memory"]:  # timings/conv
        return replace(above, sure=above.sure and parent[-1] in _OF_PARTS, by_parent=True)
    return meaning


def _is_of_runs(key: list[str]) -> bool:
    return all(word in _OF_RUNS or word in _NEUTRAL for word in key)


def _are_unknown(key: list[str]) -> bool:
    return not all(word in _KNOWN or word in _PARTS or len(word) == 1 for word in key)


def _says_nothing(key: list[str]) -> bool:
    """Whether a part of a name has neither a quantity nor whose it is: ``mean``, ``ms``; ``elapsed`` says a time."""
    neutral = all(word in _NEUTRAL or word in UNITS or word in _BYTES for word in key)
    return neutral and _CLOCK.isdisjoint(key)


def _of_words(key: list[str]) -> Meaning:
    key = _in_english(key)
    known = set(key)
    if known & _SEEDS:
        return _DATA  # also if it is from the clock
    if key[-1] in ("id", "uuid", "name", "ids", "guid") and _owner(key) in _NAMES_OF_RUN:
        return Meaning(_Of.NAME) if known.isdisjoint(_CHOSEN) else RESULT
    if key[-1] == "guid" and known.isdisjoint(_CHOSEN | _OF_DATA):
        return Meaning(_Of.NAME)
    if key == ["speed", "up"]:
        return Meaning(_Of.RATE)
    if key in (["uuid"], ["v", "num"], ["run"]) or key[-1] in ("hostname", "nodename"):
        return Meaning(_Of.NAME)
    meaning = _rate(key) or _per(key)
    if meaning is not None:
        return meaning
    if key[-1] == "age" and key[-2:-1] and key[-2] in _FILES_OF_RUNS:
        return Meaning(_Of.DURATION)
    if key[-2:] in (["load", "average"], ["load", "avg"]):
        return Meaning(_Of.AMOUNT)
    if key == ["t"]:
        return Meaning(_Of.DURATION, sure=False)
    if not {"rt", "wait"}.isdisjoint(key) and all(
        word in ("rt", "wait") or word in _NEUTRAL or word in UNITS for word in key
    ):
        return _REACTION
    if key[:2] in (["perf", "counter"], ["process", "time"], ["monotonic", "ns"]):
        return Meaning(_Of.DURATION, units=(1.0, 1e-9) if "ns" in key else _NO_UNIT)  # of the module time
    head, others = _head(key)
    meaning = _of_head(head, others, key)
    if key[:2] == ["since", "start"] or {"ctx", "switches"} <= known or {"context", "switches"} <= known:
        return Meaning(_Of.DURATION if "since" in known else _Of.AMOUNT)
    return meaning or (_DATA if known & _OF_DATA or (known & _ESTIMATED and known & _STATISTICS) else RESULT)


def _in_english(key: list[str]) -> list[str]:
    """Return words with the one for a time at their end: ``temps d'entraînement``, which is another word in English."""
    is_time = key[0] in ("temps", "tempo") and key[1:] and key[1] in _OF_TIMES
    return [*key[2:], "time"] if is_time else key


_OF_TIMES = _words("d de du di total moyen écoulé")
"""What follows upon the French, Italian and Portuguese word for a time."""

_FILES_OF_RUNS = _words("checkpoint checkpoints ckpt snapshot file lock cache backup")


def _owner(key: list[str]) -> str:
    """Return the word that says whose the last one is: ``run ID``, ``run with the ID``."""
    return next((word for word in key[-2::-1] if word not in ("with", "has", "the", "its")), "")


def says_nothing(name: str) -> bool:
    """Return whether a name is one of any quantity, such as that of a column of values."""
    return all(word in _NEUTRAL for word in words(name))


_COUNTS = _words(
    "step steps epoch epochs ep iter iters iteration iterations it batch batches row rows line fold trial"
    " round rounds episode episodes sample samples index idx"
)


def is_count(name: str) -> bool:
    """Return whether a name is that of a count, whose number is never that of a process."""
    return not _COUNTS.isdisjoint(words(name)[-1:])


def is_quantity(name: str) -> bool:
    """Return whether a name says more than whose it is and how far: of a percentage, that it is no progress."""
    return not all(word in _OF_RUNS or word in _NEUTRAL or word in _PROGRESS for word in words(name))


_PROGRESS = _words("progress done complete completed finished downloaded loaded processed map")


def is_of_memory(name: str) -> bool:
    """Return whether a name of so many bytes says that they are of memory or of a disk: ``reserved after fit``."""
    return not _RESERVED.isdisjoint(words(name)) and not meaning_of(name).of_data


def may_be_computation(name: str) -> bool:
    """Return whether a name may be of a part of a computation or a machine, whatever quantity of it: ``fold``."""
    return all(word in _OF_RUNS or word in _NEUTRAL or word in _PARTS for word in words(name))


def is_computation(name: str) -> bool:
    """Return whether a name is of a part of a computation, which takes time: ``fwd_microstep``, not ``loss``."""
    whose = words(name)
    return bool(whose) and all(word in _OF_RUNS and word not in _WITHOUT_TIME for word in whose)


def is_processed(counted: str, label: str) -> bool:
    """Return whether so many of what is counted in each second are those that a label says a program does."""
    said = {*words(label)} & _OF_DATA
    return not _PROCESSED.isdisjoint(words(counted)) and said <= {*words(counted), "simulated"}


def is_metric(name: str) -> bool:
    """Return whether a name is that of a metric or of a parameter, even below a heading of times: ``accuracy``."""
    return not (_WITHOUT_TIME | _CLASS_METRICS | _OF_DATA | _CHOSEN | _PARAMETERS).isdisjoint(words(name))


_PARAMETERS = _words("alpha beta gamma lambda epsilon threshold thresholds cutoff lr momentum temperature weight")


def is_since_start(name: str) -> bool:
    """Return whether a name may be of a time since a start, or of a moment, which grow from line to line."""
    return meaning_of(name).alone or not _SINCE_START.isdisjoint(words(name))


_SINCE_START = _DATE | _words("elapsed since wall walltime clock total cumulative t")


def names_parts(column: str) -> bool:
    """Return whether the cells of a column name parts of a program: ``function``."""
    return column.strip().lower() in _NAMED_PARTS


def is_digest(name: str) -> bool:
    """Return whether a name is that of a hash or a seed, which has no identifier in it."""
    return not _SEEDS.isdisjoint(words(name)) or bool(_HASH.search(name))


_HASH = re.compile(r"(?<![A-Za-z])(?:md|sha-?|crc-?)[0-9*]+(?![0-9])", re.IGNORECASE)


def _rate(key: list[str]) -> Meaning | None:
    """Return the meaning of so much for each unit of time, ``images_per_sec``, or of a share or a ratio of times."""
    if key[-1] == "efficiency" and not {"parallel", "scaling"}.isdisjoint(key):
        return Meaning(_Of.RATE)
    if key[-1] in ("gflop", "mflop") and "per" not in key:
        return Meaning(_Of.RATE, sure=False)
    if key[-1] == "overhead":
        return _modified(_Of.RATE, key[:-1])
    for at in [at for at, word in enumerate(key[:-1]) if at and word == "per"][::-1]:  # tokens per second per GPU
        if key[at + 1] in ("day", "days"):
            return _DATA if key[:at] != ["ns"] else Meaning(_Of.RATE)  # of a simulation of molecules
        if key[at + 1] in UNITS:
            slow = UNITS[key[at + 1]] >= UNITS["h"]  # more than a run counts
            meaning = _modified(_Of.RATE, [word for word in key[:at] if word not in _PROCESSED | {"num", "sampled"}])
            if key[at - 1] in _MATTER:
                return _DATA
            of_matter = len(key[at - 1]) == 1 and key[at - 1] not in "bs"  # g/s, K/s
            return replace(meaning, sure=meaning.sure and not of_matter and not slow)
    return None


def _per(key: list[str]) -> Meaning | None:
    """Return the meaning of so much time for each of something: ``sec_per_epoch``."""
    if "per" in key[1:-1]:
        at = key.index("per")
        units = tuple(UNITS[word] for word in key[:at] if word in UNITS)
        if units:
            whose = key[at + 1 :] if min(units) >= 1 else [one for one in key[at + 1 :] if one not in _ONE_PROCESSED]
            return _modified(_Of.DURATION, whose + [one for one in key[:at] if one not in UNITS], units)
    return None


_MATTER = _words("l dl cl ml µl μl ul mg µg μg ug kg mol mmol µmol mcg iu")
_BEFORE_ITS_OWNER = _words(
    "время продолжительность czas"
    " throughput latency fps rps qps durée duree tiempo duración duracion duração tempo memoria mémoire"
)


def _head(key: list[str]) -> tuple[str, list[str]]:
    """Return the word that says the quantity, and the words that say whose it is."""
    before, after = key, list[str]()
    for at, word in enumerate(key[1:], 1):
        if word in _LINKS and any(one in _HEADS for one in key[:at]):
            before, after = key[:at], key[at + 1 :]
            break
    at = len(before) - 1
    while at > 0 and before[at] not in _HEADS and (
        before[at] in _NEUTRAL or before[at] in UNITS or before[at] in _BYTES
    ):  # fmt: skip
        at -= 1
    if before[at] not in _HEADS and before[0] in _BEFORE_ITS_OWNER and _WITHOUT_TIME.isdisjoint(before):
        at = 0  # throughput_img_s, tiempo_entrenamiento_s
    return before[at], before[:at] + before[at + 1 :] + after


_HEADS = _CLOCK | _ESTIMATE | _RATE | _MEMORY | _METER | _DATE | _SPEEDS


def _of_head(head: str, others: list[str], key: list[str]) -> Meaning | None:
    units = tuple(UNITS[word] for word in key if word in UNITS) or _NO_UNIT
    if head in ("left", "remaining") or (head in _CLOCK and {"remaining", "left", "eta"} & set(others)):
        alone = head != "left" and all(one in _NEUTRAL or one in UNITS for one in others)
        of_time = alone or head in _CLOCK or set(others) & _CLOCK
        if not of_time:
            return None  # samples remaining: 4521
        meaning = _modified(_Of.ESTIMATE, others)
        return meaning if alone or meaning.of is not _Of.ESTIMATE else replace(meaning, sure=False)
    if head in _ESTIMATE:
        if set(others) & (_OF_DATA | _CHOSEN):
            return _DATA
        return _ETA if head == "eta" and UNITS.keys().isdisjoint(key) else Meaning(_Of.ESTIMATE)
    if head in _CLOCK:
        return _of_clock(head, others, units)
    if head in _ALSO_OF_DATA and set(key).isdisjoint(_PARTS | _OF_NETWORK | _MEMORY | _BYTES):
        meaning = _modified(_Of.AMOUNT, others)
        return replace(meaning, sure=False) if meaning.of is _Of.AMOUNT else meaning
    if head in _RATE:
        rate = _modified(_Of.RATE, [one for one in others if one not in _OF_NETWORK])
        return rate if key != ["tps"] else replace(rate, sure=False)  # true positives
    if head in _MEMORY:
        amount = _modified(_Of.AMOUNT, others)
        return amount if key != ["rss"] else replace(amount, sure=False)  # a residual sum of squares
    if {"resident", "set"} <= set(key):
        return Meaning(_Of.AMOUNT)
    if head in _METER or (head in _PROCESS_METERS | _PARTS | {"w"} and set(key) & _PARTS - _NOT_OF_MACHINES_ALONE):
        return _modified(_Of.AMOUNT, [one for one in others if one not in _PARTS | _PROCESS_METERS])
    if head in _DATE:
        return _of_date(others)
    if head in _SPEEDS:
        return _of_speed(head, others, key)
    return _of_unit(key, units)


def _of_speed(head: str, others: list[str], key: list[str]) -> Meaning | None:
    known = [one for one in others if one not in _NEUTRAL]
    if set(known) & _OF_DATA:
        return _DATA
    if head == "speed" and key != ["speed"] and not known:
        return None  # max_speed
    if known == ["ep"]:
        return Meaning(_Of.RATE, sure=False)  # of an epoch, or of an agent in an episode
    if known and (head in ("rate", "pace") or not set(known) <= _OF_RUNS):
        return None
    return Meaning(_Of.DURATION if head == "dt" else _Of.RATE, bool(known)) if head != "rate" else None


def _of_date(others: list[str]) -> Meaning:
    if "relative" in others:  # of the record of a log, in milliseconds
        return _modified(_Of.DURATION, [one for one in others if one != "relative"], (1e-3,))
    return _modified(_Of.DATE, others)


_ALSO_SIMULATED = _words("wait search queue response")
"""What customers do too, as far as nothing else is said: ``wait_time``, but ``data_wait_time``."""


def _of_clock(head: str, others: list[str], units: tuple[float, ...]) -> Meaning | None:
    meaning = _modified(_Of.DURATION, others, units)
    if head in ("cputime", "cput"):
        meaning = replace(meaning, summed=True)
    if head == "spent" and others and set(others) <= _NEUTRAL - _CLOCK - UNITS.keys():
        return replace(meaning, sure=False)  # total_spent may be money
    if head in ("uptime", "clock") and not others and units == _NO_UNIT:
        return replace(meaning, sure=False)  # a share of the time, or an age by what genes say
    of_data = {"time": (["ratio"], ["peak"], ["value"]), "duration": (["effective"], ["modified"])}
    if others in of_data.get(head, ()):
        return replace(meaning, sure=False)  # a time ratio, a time to peak, a modified duration
    owners = set(others) - _NEUTRAL - UNITS.keys()
    if owners and owners <= _ALSO_SIMULATED:
        return replace(meaning, sure=False)
    if owners == {"pred"}:
        return Meaning(_Of.DURATION, sure=False, units=units)  # of a prediction, or a time that was predicted
    if not _MOMENTS.isdisjoint(others) and (owners <= _MOMENTS or owners & _ALSO_IN_RECORDINGS):
        return replace(meaning, sure=False)
    if head in ("duration", "durations") and owners and owners <= _ALSO_IN_RECORDINGS - _OF_REQUESTS:
        return replace(meaning, sure=False)  # of a word, of a call by telephone
    if not {"episode", "episodes"}.isdisjoint(others):
        return replace(meaning, by_parent=True)  # whole ones are steps
    return replace(meaning, alone=meaning.of is _Of.DURATION and head in _ALONE and not others)


def _of_unit(key: list[str], units: tuple[float, ...]) -> Meaning | None:
    """Return the meaning of a name without a word for a quantity, by its unit or as a number of the run."""
    while len(key) > 1 and key[-1] in _NEUTRAL and not UNITS.keys().isdisjoint(key[:-1]):
        key = key[:-1]  # seconds.mean
    last = key[-1]
    if last in _COUNTED_BY_MACHINE:
        return Meaning(_Of.AMOUNT)
    if not _CHOSEN.isdisjoint(key) or (last == "port" and not _OF_FLOWS.isdisjoint(key)):
        return None  # predicted_port, dst_port
    if last in _NUMBER_OF_RUN - _COUNTED_OF_RUN or (
        last in ("id", "ident", "number", "num", "no") and len(key) > 1 and key[-2] in _NUMBER_OF_RUN
    ):
        return Meaning(_Of.NUMBER, least=_LEAST_PORT if last in ("port", "ports") else 0)
    if last == "s" and len(key) > 1 and key[-2] in _BYTES | _COUNTED:
        return _modified(_Of.RATE, key[:-2])  # read_mb_s, samples_s
    if last in UNITS:
        whose = [word for word in key if word not in UNITS and word not in _NEUTRAL]
        if last in _SHORT_UNITS and "total" not in key and (not whose or not set(whose) <= _OF_RUNS | _PARTS):
            return None
        if set(whose) & _WITHOUT_TIME and set(key).isdisjoint(_CLOCK):
            return None  # loss_s of a student, val_loss_min
        meaning = _modified(_Of.DURATION, key[:-1], units)
        return replace(meaning, sure=False) if whose and set(whose) <= _ALSO_SIMULATED else meaning
    if set(key) & _BYTES and set(key) & _OF_BYTES:
        return _modified(_Of.AMOUNT, [one for one in key if one not in _BYTES | _PARTS])
    return None


_COUNTED = _words("samples images imgs tokens steps frames examples batches queries requests")
_RESERVED = _MEMORY | _words("allocated reserved free tracemalloc")
_OF_BYTES = _RESERVED | _PARTS | {"peak"}


def _modified(of: _Of, whose: list[str], units: tuple[float, ...] = _NO_UNIT) -> Meaning:
    """Return a meaning, by the words that say whose quantity it is."""
    said = set(whose)
    if said & _OF_DATA:
        return _DATA
    unknown = [
        word for word in whose
        if word not in _OF_RUNS and word not in _OF_PROGRAMS and word not in _NEUTRAL and word not in UNITS
        and word not in _HEADS
        and word not in _BYTES and word not in _PARTS and len(word) > 1
    ]  # fmt: skip
    summed = bool(said & _words("cpu user sys total sum cumulative thread threads workers process"))
    return Meaning(of, not unknown, units=units, summed=summed)


# Values

_NUMBER = re.compile(
    r"[~≈<>]?\s*([+-]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([kKMGT](?![^\W\d_]))?\s*"
    r"(%|°C|/\s?[a-zµμ]+|[^\W\d_][^\d\s]*(?: per \w+)?)?"
)
_CLOCK_TEXT = re.compile(r"(?:(\d+) days?, ?)?(\d{1,4}):(\d\d)(?::(\d\d))?(?:[.,](\d+))?\s?([ap]m)?", re.IGNORECASE)
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?")
_SPANS = re.compile(r"(?:\d+(?:\.\d+)?\s?[a-z]+[ ,:]*){2,}", re.IGNORECASE)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s?([a-z]+)", re.IGNORECASE)
_ISO = re.compile(
    r"(\d{4})[-/._]?(\d\d)[-/._]?(\d\d)"
    r"(?:[T _-]{0,3}(\d\d)[-:._h]?(\d\d)(?:[-:._m]?(\d\d)(?:[.,]\d{1,9}){0,2})?)?\s?(Z|UTC|GMT|[+-]\d\d:?\d\d)?"
)
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAME = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?"
_TIME = r"(\d\d)[:-](\d\d)(?:[:-](\d\d))?(?:[.,]\d+)?"
_C_TIME = re.compile(  # Tue Nov 25 08:12:33 2026; Nov25_08-12-33; 25 Nov 2026 08:12:33
    rf"{_DAY_NAME}{_MONTH}[ .]{{0,2}}(\d{{1,2}})[, _]{{1,3}}(?:(\d{{4}})[, ]+)?{_TIME}"
    r"(?:\s[A-Z]{3,4})?(?:\s(\d{4}))?",
    re.IGNORECASE,
)
_MAIL_TIME = re.compile(rf"{_DAY_NAME}(\d{{1,2}})[ -]{_MONTH}[ -](\d{{4}})(?:[ T]+{_TIME})?", re.IGNORECASE)
_REPR_OF_DATE = re.compile(
    r"datetime\.datetime\((\d+), (\d+), (\d+)(?:, (\d+))?(?:, (\d+))?(?:, (\d+))?(?:, \d+)?(?:, tzinfo=[\w.]+)?\)"
)
_NUMERIC_DATE = re.compile(rf"(\d\d?)[/.](\d\d?)[/.](\d{{2}}|\d{{4}})(?:,?\s+{_TIME})?")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
BARE_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}(?![0-9A-Za-z])")
"""A random UUID without hyphens: https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-4"""

_REPR = re.compile(r"<[^<>]* at 0x[0-9a-f]+>", re.IGNORECASE)
_ADDRESS = re.compile(
    r"\b0x0{0,4}(?:7[ef][0-9a-f]{10}|5[56][0-9a-f]{10}|(?:fff[ef]|ffff|aaaa|6000)[0-9a-f]{8}|1[0-9a-f]{8})\b"
    r"|(?<= at )0x[0-9a-f]{6,16}\b",
    re.IGNORECASE,
)
"""Where Linux on x86-64 and 64-bit ARM, and macOS, put objects; after ``at`` any address: other hex is a result."""

_PORT = re.compile(r"((?:localhost|(?<!\d)\d{1,3}(?:\.\d{1,3}){3}):)\d{4,5}(?!\d)")
NUMBER_IN_NAME = re.compile(r"(?<=[A-Za-z\d\ufffc][-_.@:])(?:\d{3,7}|\d{15})(?![\dA-Za-z])")
RANDOM_NAME = re.compile(r"(?<=\bT_)[0-9a-f]{5}(?=_|\b)|(?<=altair-viz-)[0-9a-f]{32}\b")
"""Names that pandas and Altair make up for the parts of a page."""

_TEMPORARY = re.compile(
    r"(?<=/)pytest-\d+\b|(?<=/tmp/)[A-Za-z][\w.]*?[-_.](?=[A-Za-z]*\d+[A-Za-z])[A-Za-z0-9]{6,12}\b|(?<=/)psm_[0-9a-f]{8}\b"
    r"|(?:^|(?<=[/\\]))(?:tmp|temp)[-_.]?(?=[A-Za-z_]*[0-9])[A-Za-z0-9_]{6,12}\b|(?<=[/\\])tmp[a-z0-9_]{8}\b"
    r"|(?<=[/\\])(?:torchelastic|pymp|ray|joblib_memmapping_folder"
    r"|torchinductor|ipykernel|wandb)[-_][\w-]+(?:(?<=[\w-]{8})/listener-\w{8}\b)?"
)
_VERSION = re.compile(r"(?<=[/\\])version_\d+\b|\bversion_\d+(?=[/\\])")
_RUN_STAMP = re.compile(
    r"(?<![\dA-Za-z])(?:\d{8}[-_T]?(?:\d{12}|\d{9}|\d{4,6})(?:[-_](?:[0-9a-z]{8}|\d{6})\b)?|(?:\d\d)?\d{4}[-_]\d{6}(?!\d))"
)
"""20261126_112049, maybe with a random name or fractions of a second; 261126-112049; 1126_112049."""

_RUN_ID = re.compile(
    r"(?<=[/\\])[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}(?=[/\\]|$)"
    r"|(?<![A-Za-z0-9])(?=\d*[a-f])[0-9a-f]{5}(?=_\d{5}(?!\d))"  # of Ray Tune, before the number of the trial
    r"|(?<=[/\\])session_\d{4}(?:-\d\d){2}_\d\d(?:-\d\d){2}_\d{6}_\d+(?=[/\\]|$)"
    r"|(?<=mlruns[/\\])\d{18}(?=[/\\]|$)"  # of an experiment of MLflow
    r"|(?:(?<=runs[/\\])|(?<=wandb[/\\])|(?<=sweeps[/\\]))(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{8}(?=[/\\]|$)"
)
OID = re.compile(r"(?<![\w.])[0-2]\.\d{1,3}(?:\.\d{1,39}){0,18}\.\d{15,39}(?:\.\d{1,39})*(?!\w|\.\d)")
"""A UID of DICOM that was made up, with a number that nobody counts to."""

_LONGEST = 4096
"""Characters of a value that may be a measurement or an identifier."""

_SLUG = re.compile(r"[\w.:@/+-]{1,120}")

_LEAST_OWN_NUMBER = 300
"""Smaller numbers may be process IDs in a container, and are much else: they need a name."""

_SLACK_S, _SLACK = 2.0, 1.05
_CPUS = 1024
"""Times that are summed over threads are as many times longer than the run, at most."""

_DAY = 86400.0
_JULIAN = 2440587.5  # the first of January 1970 in Julian days
_MARGIN_S, _ZONE_MARGIN_S = 120.0, 10.0
_ZONE_S, _MOST_ZONES = 900.0, 56
_MOST_ESTIMATED = 10 * 365 * _DAY
_MOST_BYTES = 2**50


def role(name: str, value: str, facts: RunFacts) -> Role:
    """Return what a value is: ``name`` is its column, key, label or path inside a file, ``""`` if it has none.

    ``value`` is its text: a number, a date, or any other text.
    """
    value, meaning = value.strip(), meaning_of(name)
    if len(value) > _LONGEST:
        return Role.RESULT
    if meaning.is_name and _HEX_ID.fullmatch(value):
        return Role.IDENTIFIER  # 8530403b is no number of bytes, 123e4567 not infinite
    number = _NUMBER.fullmatch(value)
    if number is not None and not _ISO_LIKE.fullmatch(value):
        if (
            is_whole(value)
            and value.isdecimal()
            and is_own_number(float(value), facts, name)
            and not (is_digest(name) or is_count(name))
        ):
            return Role.IDENTIFIER  # whatever its name: two runs hardly count to their own numbers by chance
        return _number_role(meaning, number, facts)
    if meaning.of_data:
        return Role.RESULT
    moment = _moment(value, facts)
    if moment is not None:
        return Role.MEASUREMENT if _is_now(*moment, facts) else Role.RESULT
    seconds = _clock(value)
    if seconds is not None:
        if words(name) in (["user"], ["sys"]):
            meaning = replace(meaning, summed=True)  # as the shell prints them
        return _clock_role(meaning, seconds, value, facts)
    if _is_own(value, facts) and not is_digest(name):
        return Role.IDENTIFIER
    if meaning.of in (_Of.NAME, _Of.NUMBER) and _SLUG.fullmatch(value):
        return Role.IDENTIFIER
    return Role.RESULT


_HEX_ID = re.compile(r"(?=[0-9]*[a-f])[0-9a-f]{6,64}")
_ISO_LIKE = re.compile(r"\d{4}[-/._]\d\d[-/._]\d\d(?:_\d\d){0,3}|\d{8}[-_]\d{4,6}")


@lru_cache(maxsize=65536)
def names_a_run(name: str, text: str) -> bool:
    """Return whether a text names a run, such as a UUID, whatever the facts of that run are; see ``role``."""
    return role(name, text, ANY_RUN) is Role.IDENTIFIER


ANY_RUN = RunFacts(started=0.0, ended=0.0)
"""The facts of a run of which none is known."""


def array_role(name: str, least: float, most: float, facts: RunFacts) -> Role:
    """Return what a whole array or column of numbers is, by its name and its least and largest element."""
    meaning = meaning_of(name)
    if (least % 1 or most % 1) and is_clock(least, facts) and is_clock(most, facts):
        return Role.MEASUREMENT
    if meaning.of in (_Of.NOTHING, _Of.RESULT, _Of.NAME) or not (math.isfinite(least) and math.isfinite(most)):
        return Role.RESULT
    if meaning.of is _Of.NUMBER:
        return Role.IDENTIFIER if least >= max(meaning.least, 1) and most < 2**48 else Role.RESULT
    if least == -1 and meaning.of is _Of.DURATION and _fits(meaning, most, facts):
        return Role.OPEN  # -1 may be what was not measured
    fits = [_fits(meaning, one, facts) for one in (least, most)]
    if not all(fits):
        return Role.RESULT
    if words(name.rpartition(".")[2]) == ["memory"]:
        return Role.OPEN  # of examples, or of a cell
    moments = _is_epoch(least, facts) and _is_epoch(most, facts)
    in_seconds = most <= longest(facts) or moments
    if facts.counted and meaning.of in _TIMED and not moments:
        return Role.OPEN
    return Role.MEASUREMENT if moments or (meaning.sure and (in_seconds or not meaning.alone)) else Role.OPEN


def _number_role(meaning: Meaning, match: re.Match[str], facts: RunFacts) -> Role:
    text, unit = match[1].replace(",", "").replace("_", ""), match[3] or ""
    value = float(text) * SUFFIXES[match[2] or ""]
    return number_role(with_unit(meaning, unit), value, is_whole(text), facts)


SUFFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def is_whole(text: str) -> bool:
    """Return whether a number is written as a whole one."""
    return "." not in text and "e" not in text and "E" not in text


def number_role(meaning: Meaning, value: float, is_integer: bool, facts: RunFacts) -> Role:
    """Return what a number is that is named so."""
    if not meaning.of_data and (is_clock(value, facts) if not is_integer else is_fine_clock(value, facts)):
        return Role.MEASUREMENT
    if is_age(value, facts):
        return Role.MEASUREMENT
    if meaning.of is _Of.RESULT or not math.isfinite(value) or (meaning.by_parent and is_integer):
        return Role.RESULT
    if meaning.of in (_Of.NUMBER, _Of.NAME):
        return Role.IDENTIFIER if value >= meaning.least and value == int(value) else Role.RESULT
    if meaning.of is _Of.NOTHING:
        return _bare_role(value, is_integer, facts)
    if meaning.alone and value > longest(facts) and _fits(meaning, value, facts) and not _is_epoch(value, facts):
        return Role.OPEN
    if not _fits(meaning, value, facts):
        return Role.IDENTIFIER if is_integer and is_own_number(value, facts) else Role.RESULT
    of_clock = meaning.of in (_Of.DATE, _Of.DURATION) and (
        any(is_clock(value / scale, facts) for scale in _SCALES) or _is_since_boot(meaning, value, facts)
    )
    of_bytes = meaning.of is _Of.AMOUNT and is_integer and value >= _LEAST_BYTES
    if facts.counted and meaning.of in _TIMED and not of_clock:
        return Role.OPEN
    of_rest = meaning == _ETA and value > 1
    return Role.MEASUREMENT if meaning.sure or of_clock or of_bytes or of_rest else Role.OPEN


def is_age(value: float, facts: RunFacts) -> bool:
    """Return whether a number is what a clock counted minus the time of a file or a process, which is real."""
    shift_s = abs(facts.shift_s)
    return facts.counted and shift_s > _LEAST_SHIFT_S and abs(abs(value) - shift_s) <= longest(facts) + _MARGIN_S


_LEAST_SHIFT_S = 1e7
"""Results are near smaller numbers too."""


def is_clock(value: float, facts: RunFacts) -> bool:
    """Return whether a number is a second since 1970 in which the run was: nothing else is in so small a range."""
    return value >= 1e9 and any(
        facts.started + shift - 1 <= value <= facts.ended + shift + 1 for shift in {0.0, facts.shift_s}
    )


def is_fine_clock(value: float, facts: RunFacts) -> bool:
    """Return whether a whole number is thousandths of such a second, or less. Whole seconds may be a seed."""
    return value >= _LEAST_FINE and any(is_clock(value / scale, facts) for scale in _SCALES[1:])


_LEAST_FINE = 10**12


def is_own_number(value: float, facts: RunFacts, name: str = "") -> bool:
    """Return whether a whole number is a process, a port, or a thread, which is the address of what describes it.

    Under a ``name`` that says so, it may be the address of any object, as ``id()`` returns it.
    """
    last = words(name)[-1:]
    if last == ["salt"]:  # of a hash, or of a worker: https://luigi.readthedocs.io
        return value >= _LEAST_SALT
    of_object = not _OF_ADDRESS.isdisjoint(last)
    if any(first <= value < last for first, last in ((*_STACKS, _HEAP) if of_object else _STACKS)):
        return int(value) % (_ALIGNED_OBJECT if of_object else _ALIGNED) == 0
    return _LEAST_OWN_NUMBER <= value < math.inf and (int(value) in facts.pids or int(value) in facts.ports)


_LEAST_SALT = 10**6
"""Smaller ones may be an amount of salt."""

_LEAST_BYTES = 2**16
"""Of what may be memory, whole numbers from here on are bytes or KiB of a process."""

_STACKS = ((0x7E0000000000, 0x800000000000), (0xFE0000000000, 0x1000000000000))
"""Where Linux maps memory on x86-64 and on 64-bit ARM: the numbers of ``threading.get_ident`` and of log records."""

_ALIGNED = 64
"""What glibc aligns the description of a thread to."""

_HEAP = (0x550000000000, 0x570000000000)
"""Where Linux maps a program and its heap on x86-64."""

_ALIGNED_OBJECT = 8
_OF_ADDRESS = _words("id ids addr address ptr pointer")


def is_address(text: str, label: str) -> bool:
    """Return whether a number in hex is where an object is, by its label or by itself: bits of a float are not."""
    return bool(_ADDRESS.fullmatch(text)) or not ({"at"} | _OF_ADDRESS).isdisjoint(words(label)[-1:])


@lru_cache(maxsize=65536)
def with_unit(meaning: Meaning, unit: str) -> Meaning:
    """Return what a name says of a number that has a unit: a unit of time says more than an unknown name."""
    if not unit:
        return meaning
    if unit == "%":
        if meaning.of is _Of.DURATION and meaning.sure and not meaning.alone:
            return Meaning(_Of.RATE)  # its share
        return meaning if meaning.of in (_Of.AMOUNT, _Of.RATE) else RESULT
    if unit[0] == "/" and unit[1:].strip().lower() in UNITS:
        if meaning.of is _Of.RESULT and UNITS[unit[1:].strip().lower()] >= UNITS["h"]:
            return RESULT  # 0.31/day
        return RESULT if meaning.of_data else Meaning(_Of.RATE)
    said = meaning_of(unit) if "/" in unit or " per " in unit or unit.lower() in _RATE else NOTHING
    if unit.endswith("FLOPS"):
        said = Meaning(_Of.RATE)
    if unit.lower() in UNITS:
        said = Meaning(_Of.DURATION, units=(UNITS[unit.lower()],))
    if said.of_data:
        return RESULT  # km/h
    if unit in _MACHINE_UNITS and not meaning.of_data:
        return Meaning(_Of.AMOUNT, sure=meaning.of is not _Of.RESULT)  # of what is not said to be of a machine
    if said.of not in (_Of.DURATION, _Of.RATE):
        if unit.lower() in _BYTES:
            return Meaning(_Of.AMOUNT) if meaning.of is _Of.AMOUNT else RESULT
        return meaning
    if meaning.of is _Of.ESTIMATE:
        return Meaning(_Of.ESTIMATE)
    if meaning.of is _Of.RESULT and meaning.of_data:
        return RESULT
    if meaning is _REACTION:
        return replace(meaning, units=said.units)
    return replace(said, summed=meaning.summed)


def _bare_role(value: float, is_integer: bool, facts: RunFacts) -> Role:
    if is_integer:
        if is_own_number(value, facts):
            return Role.IDENTIFIER
        return Role.OPEN if value >= 1e9 and _is_epoch(value, facts) else Role.RESULT
    if value >= 1e9:
        return Role.OPEN if _is_epoch(value, facts) else Role.RESULT
    may_be_time = 0 <= value <= longest(facts) or _is_since_boot(NOTHING, value, facts)
    return Role.OPEN if may_be_time else Role.RESULT


def _fits(meaning: Meaning, value: float, facts: RunFacts) -> bool:
    """Return whether a clock or a meter of this run can show a value."""
    if value < 0 or not math.isfinite(value):
        return False
    if meaning.of is _Of.ESTIMATE:
        return value <= _MOST_ESTIMATED
    if meaning.of is _Of.RATE:
        return True
    if meaning.of is _Of.AMOUNT:
        return value <= _MOST_BYTES
    if value >= 1e9 and _is_epoch(value, facts):
        return True
    if meaning.of is _Of.DATE and (
        _is_date_number(value, facts) or _is_now((value - _JULIAN) * _DAY, 1.0, True, facts)
    ):
        return True
    if _is_since_boot(meaning, value, facts):
        return True
    if meaning.of is _Of.DATE:
        return False
    most = longest(facts) * (_CPUS if meaning.summed else 1)
    counted = value == int(value) and value >= 1e3  # as perf_counter_ns does
    units = (*meaning.units, *((1e-6, 1e-9) if counted and meaning.units == _NO_UNIT else ()))
    return any(value * unit <= most for unit in units)


def _is_since_boot(meaning: Meaning, value: float, facts: RunFacts) -> bool:
    """Return whether a number is what time.perf_counter says in the run."""
    seconds = longest(facts)
    return bool(facts.since_boot) and any(0 <= value * one - facts.since_boot + 1 <= seconds for one in meaning.units)


def longest(facts: RunFacts) -> float:
    """Return how many seconds a clock of the run may have counted."""
    return max(facts.ended - facts.started, 0.0) * _SLACK + _SLACK_S


_SCALES = (1.0, 1e3, 1e6, 1e9)
"""Seconds since 1970, and thousandths of these, and so on."""


def _is_epoch(value: float, facts: RunFacts) -> bool:
    """Return whether a number is a moment of the run in seconds since 1970, or in thousandths of these, and so on."""
    return any(_is_now(value / scale, 0.0, True, facts) for scale in _SCALES)


def _is_date_number(value: float, facts: RunFacts) -> bool:
    """Return whether a number is the date of the run, as 20261125 or 20261125081233."""
    text = f"{value:.0f}"
    if len(text) not in (8, 12, 14):
        return False
    moment = _moment(text, facts)
    return moment is not None and _is_now(*moment, facts)


def _is_now(seconds: float, precision: float, utc: bool, facts: RunFacts) -> bool:
    """Return whether a moment is one of the run, by its own clock or the real one.

    Without ``utc``, it may be of any time zone, which are apart by quarters of an hour.
    """
    if not math.isfinite(seconds):
        return False
    for shift in {0.0, facts.shift_s}:
        early, late = facts.started + shift - precision, facts.ended + shift
        if early - _MARGIN_S <= seconds <= late + _MARGIN_S:
            return True
        zone = max(math.ceil((seconds - late - _ZONE_MARGIN_S) / _ZONE_S), -_MOST_ZONES)
        if not utc and zone <= _MOST_ZONES and seconds - zone * _ZONE_S >= early - _ZONE_MARGIN_S:
            return True
    return False


def _moment(text: str, facts: RunFacts) -> tuple[float, float, bool] | None:
    """Return a date in seconds since 1970, how precise it is in seconds, and whether its time zone is known.

    Without a year, it is of the year in which the run began.
    """
    this_year = datetime.fromtimestamp(facts.started + facts.shift_s, timezone.utc).year
    try:
        if match := _ISO.fullmatch(text):
            year, month, day, hour, minute, second, zone = match.groups()
            return _seconds(int(year), int(month), int(day), hour, minute, second, zone)
        if match := _C_TIME.fullmatch(text):
            name, day, before, hour, minute, second, after = match.groups()
            year = int(before or after or this_year)
            return _seconds(year, _MONTHS.index(name[:3].lower()) + 1, int(day), hour, minute, second)
        if match := _MAIL_TIME.fullmatch(text):
            day, name, year, hour, minute, second = match.groups()
            return _seconds(int(year), _MONTHS.index(name[:3].lower()) + 1, int(day), hour, minute, second)
        if match := _REPR_OF_DATE.fullmatch(text):
            year, month, day, hour, minute, second = match.groups()
            return _seconds(int(year), int(month), int(day), hour, minute, second)
        if match := _NUMERIC_DATE.fullmatch(text):
            *numbers, year, hour, minute, second = match.groups()
            year = int(year) + (2000 if len(year) == 2 else 0)
            orders = {(int(month), int(day)) for month, day in (numbers, reversed(numbers)) if int(month) <= 12}
            began = datetime.fromtimestamp(facts.started + facts.shift_s, timezone.utc).timetuple().tm_yday
            month, day = min(orders, key=lambda one: abs(datetime(year, *one).timetuple().tm_yday - began))
            return _seconds(year, month, day, hour, minute, second)
    except ValueError:
        pass
    return None


def _seconds(
    year: int, month: int, day: int, hour: str | None, minute: str | None, second: str | None, zone: str | None = None
) -> tuple[float, float, bool]:
    moment = datetime(year, month, day, int(hour or 0), int(minute or 0), int(second or 0))
    seconds = float(calendar.timegm(moment.timetuple()))
    precision = 1.0 if second else 60.0 if hour else _DAY
    if zone and zone[0] in "+-":
        sign = -1 if zone[0] == "-" else 1
        seconds -= sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
    return seconds, precision, bool(zone)


def _clock(text: str) -> float | None:
    """Return the seconds that a text such as 0:01:02.5, 01:02 or 1m 2s says, None if it says none."""
    if match := _CLOCK_TEXT.fullmatch(text):
        days, first, second, third, fraction, half = match.groups()
        seconds = float(f"0.{fraction}") if fraction else 0.0
        big, small = (int(first) * 3600 + int(second) * 60, int(third)) if third else (int(first) * 60, int(second))
        return seconds + big + small + int(days or 0) * _DAY + (12 * 3600 if (half or "").lower() == "pm" else 0)
    if match := _ISO_DURATION.fullmatch(text):
        return sum(
            float(number or 0) * unit for number, unit in zip(match.groups(), (_DAY, 3600.0, 60.0, 1.0), strict=True)
        )
    if _SPANS.fullmatch(text):
        parts = _SPAN.findall(text)
        if all(unit.lower() in _SPAN_UNITS for _, unit in parts):
            return sum(float(number) * _SPAN_UNITS[unit.lower()] for number, unit in parts)
    return None


def is_span(text: str) -> bool:
    """Return whether a text is a duration with units, such as 1m2.5s."""
    return bool(_SPANS.fullmatch(text.strip())) and _clock(text.strip()) is not None


_SPAN_UNITS = {**UNITS, "m": 60.0}


def _clock_role(meaning: Meaning, seconds: float, text: str, facts: RunFacts) -> Role:
    in_run = seconds <= longest(facts) * (_CPUS if meaning.summed else 1)
    may_be_data = meaning.of is _Of.DURATION and not meaning.sure
    if meaning.of is _Of.ESTIMATE or (in_run and not may_be_data):
        return Role.OPEN if facts.counted and ":" not in text else Role.MEASUREMENT
    colons = text.count(":")
    if colons and seconds < _DAY + 1:  # a time of day, in any time zone
        precision = 1.0 if colons > 1 else 60.0
        times = (seconds, seconds * 60) if colons == 1 and seconds * 60 < _DAY else (seconds,)
        for time_of_day in times:
            if any(_is_now(day * _DAY + time_of_day, precision, False, facts) for day in _days(facts)):
                return Role.MEASUREMENT
    return Role.OPEN if in_run else Role.RESULT


def _days(facts: RunFacts) -> Iterator[int]:
    """Yield the days since 1970 in which a run may have been, in any time zone, by its own clock or the real one."""
    for shift in {0.0, facts.shift_s}:
        early, late = facts.started + shift, facts.ended + shift
        yield from range(math.floor(early / _DAY) - 1, math.ceil(late / _DAY) + 2)


def _is_own(text: str, facts: RunFacts) -> bool:
    """Return whether a text has in it what only stands for this run; one with spaces is only the repr of an object."""
    if not text or (" " in text and not _REPR.fullmatch(text)):
        return False
    return masked(text, facts) != text


MASK = "\N{OBJECT REPLACEMENT CHARACTER}"
"""What takes the place of an identifier in a text."""


def masked(text: str, facts: RunFacts) -> str:
    """Return a text with a mark in place of each identifier of the run.

    These are its names, UUIDs, addresses of objects, temporary names, numbered folders, and moments in names. Two texts
    that only differ in identifiers are equal then.
    """
    for name in sorted(facts.names, key=len, reverse=True):
        if len(name) >= 3 and name in text:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", MASK, text)
    for name, first in facts.numbered:
        last = name.rpartition("/")[2]
        if text == last and not last.isdigit():
            text = first.rpartition("/")[2]
        elif name in text:
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?!\w)", lambda _, first=first: first, text)  # type: ignore[misc]
    for pattern, parts in _MASKED:
        if any(part in text for part in parts):
            text = pattern.sub(MASK, text)
    if _HEX.search(text):
        text = _RUN_ID.sub(MASK, BARE_UUID.sub(MASK, text))
    if ":" in text:
        text = _PORT.sub(rf"\1{MASK}", text)
    if facts.pids:
        text = NUMBER_IN_NAME.sub(lambda match: MASK if is_own_number(int(match[0]), facts) else match[0], text)
    if not _STAMP.search(text):
        return text
    text = _RUN_STAMP.sub(lambda match: MASK if _is_stamp(match[0], facts) else match[0], text)
    return _STAMP_IN_NAME.sub(lambda match: MASK if _is_stamp(match[0], facts) else match[0], text)


_MASKED = (
    (UUID, ("-",)),
    (_ADDRESS, ("0x", "0X")),
    (
        _TEMPORARY,
        ("tmp", "temp", "pytest-", "psm_", "pymp", "ray", "torch", "joblib_", "ipykernel", "wandb"),
    ),
    (_VERSION, ("version_",)),
    (RANDOM_NAME, ("T_", "altair-")),
    (OID, (".",)),
)
"""What stands for a run by its form, with parts of which a text that has it has one: searching for these is cheap."""

_HEX = re.compile(r"[0-9a-f]{5}_\d{5}|[0-9a-f]{32}|session_|(?:runs|wandb|sweeps)[/\\]")
_STAMP = re.compile(r"\d\d[-_.T]\d\d|\d{10}")

_STAMP_IN_NAME = re.compile(
    r"(?<!\d)\d{4}[-_]\d\d[-_]\d\d(?:[T/_ -]{1,2}\d\d[-:._]\d\d(?:[-:._]\d\d(?:[.,]\d+){0,2})?)?(?!\d)"
    r"|(?<!\d)\d\d[-_.]\d\d[-_.]\d{4}[T_ -]{1,2}\d\d[-:._]\d\d(?:[-:._]\d\d)?(?!\d)"
    r"|(?<!\d)\d{4}[-_]\d\d[-_]\d\d[T_ -]{1,2}\d{6}(?!\d)"
    r"|(?<![A-Za-z])(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\d\d_\d\d-\d\d-\d\d"
    r"|(?<!\d)1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?!\d)"
)


_DAY_FIRST = re.compile(r"(\d\d)[-_.](\d\d)[-_.](\d{4})([T_ -]{1,2}\d\d)[-:._](\d\d)(?:[-:._](\d\d))?")
_WHOLE_TIME = re.compile(r"(\d{4}[-_]\d\d[-_]\d\d)[T_ -]{1,2}(\d\d)(\d\d)(\d\d)")


def _is_stamp(text: str, facts: RunFacts) -> bool:
    if match := _DAY_FIRST.fullmatch(text):
        first, second, year, hour, minute, seconds = match.groups()
        clock = f"{hour}:{minute}:{seconds or '00'}"
        return any(_is_stamp(f"{year}-{date}{clock}", facts) for date in (f"{second}-{first}", f"{first}-{second}"))
    if match := _WHOLE_TIME.fullmatch(text):
        text = f"{match[1]} {match[2]}:{match[3]}:{match[4]}"
    if re.fullmatch(r"1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?", text):
        return _is_epoch(float(text), facts)
    if digits := re.match(r"(\d{8}|\d{6}|\d{4})[-_T]?(\d{4,6})(?:\d{3}|\d{6}|[-_][0-9a-z]{6,8})?$", text):
        today = datetime.fromtimestamp(facts.started + facts.shift_s, timezone.utc).strftime("%Y%m%d")
        text = f"{today[: 8 - len(digits[1])]}{digits[1]} {digits[2]}"
    else:
        text = text.replace("/", " ")
    moment = _moment(text, facts)
    return moment is not None and _is_now(*moment, facts)
