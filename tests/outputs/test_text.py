"""Printed text as a terminal leaves it, and its comparison by words and numbers."""

import random
import re
import time
from collections.abc import Sequence
from unittest import mock

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from detaudit.model.outputs import (
    DECIDING,
    OPEN,
    STDERR,
    STDOUT,
    Declared,
    OutputDifference,
    OutputKind,
    RunFacts,
    Text,
)
from detaudit.outputs import screen, text
from detaudit.outputs.text import Recorder, compare, digested, text_of

A = RunFacts(started=1764058350.0, ended=1764058400.0, pids=frozenset({4242}), names=("/work/live-1", "node17"))
B = RunFacts(started=1764058450.0, ended=1764058510.0, pids=frozenset({5353}), names=("/work/live-2", "node18"))


def recorded(data: bytes, cuts: Sequence[int] = (), facts: RunFacts = A) -> Text:
    recorder = Recorder(facts)
    at = 0
    for cut in sorted({min(cut, len(data)) for cut in cuts}):
        recorder.feed(data[at:cut])
        at = cut
    recorder.feed(data[at:])
    return recorder.finish()


def differences(a: str, b: str, stream: str = STDOUT, ignored: Sequence[str] = ()) -> list[OutputDifference]:
    patterns = [re.compile(pattern) for pattern in ignored]
    return compare(recorded(a.encode()), recorded(b.encode(), (), B), stream, A, B, patterns)


def serious(found: Sequence[OutputDifference]) -> list[tuple[OutputKind, str, tuple[str, str]]]:
    return [(one.kind, one.at, one.values) for one in found if one.kind in DECIDING | OPEN]


@pytest.mark.parametrize(
    ("printed", "lines"),
    [
        ("a\nb\n", ("a", "b")),
        ("a\nb", ("a", "b")),
        ("a\r\nb\r\n", ("a", "b")),
        ("", ()),
        ("\n", ("",)),
        ("10%\r20%\r30%\ndone\n", ("30%", "done")),
        ("longer text\rab\n", ("abnger text",)),
        ("longer text\r\x1b[Kab\n", ("ab",)),
        ("abc\b\b\bxyz\n", ("xyz",)),
        ("ab\bc\n", ("ac",)),
        ("\x1b[1;32mgreen\x1b[0m\n", ("green",)),
        ("\x1b]0;title\x07text\n", ("text",)),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", ("link",)),
        ("one\ntwo\n\x1b[2AONE\n\x1b[1B", ("ONE", "two")),
        ("bar 0\nbar 1\n\x1b[A\x1b[A\rbar A\n\rbar B\n", ("bar A", "bar B")),
        ("epoch 1\n\x1b[A\x1b[2Kepoch 2\n", ("epoch 2",)),
        ("kept\n\x1b[2J\x1b[Hframe 1\n\x1b[2J\x1b[Hframe 2\n", ("kept", "", "frame 2")),
        ("█▌ 50%\r██ 100%\n", ("██ 100%",)),
        ("a\x07b\x00c\n", ("abc",)),
        ("x\x1b[5Gy\n", ("x   y",)),
        ("abc\x1b[2Dz\n", ("azc",)),
        ("spaces   \n", ("spaces",)),
        ("é\rx\n", ("x",)),
    ],
)
def test_what_a_terminal_leaves(printed: str, lines: tuple[str, ...]) -> None:
    assert recorded(printed.encode()).lines == lines


ESCAPES = ("\r", "\n", "\b", "\x1b[A", "\x1b[2K", "\x1b[K", "\x1b[31m", "\x1b[2J", "\x1b[H", "\x1b[3D", "\x1b[1B", "\t")
PRINTED = st.lists(
    st.sampled_from([*ESCAPES, "ab", "é█", "12.5", "\x1b]0;t\x07", " "]) | st.text(max_size=3), max_size=60
)


@example("\x1b[2J\n\n\n", b"\n", [8])
@example("ab12.512.512.512.512.512.5\x1b[2K", b"", [55])
@example("\x1b[2Kab", b"\xc2\x00\x80", [9])
@example("\t\xe9\u2588 \U00010000", b"\x00     \x80\x80\x80\x80\x80\x80\x80\x80", [12])
@given(PRINTED.map("".join), st.binary(max_size=20), st.lists(st.integers(0, 200)))
def test_how_output_is_cut_into_pieces_does_not_matter(printed: str, garbage: bytes, cuts: list[int]) -> None:
    data = printed.encode("utf-8", "surrogatepass") + garbage + printed.encode("utf-8", "surrogatepass")
    with mock.patch.object(screen, "ROWS", 4), mock.patch.object(screen, "LONGEST_LINE", 50):
        assert recorded(data, cuts) == recorded(data)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300)))
def test_binary_garbage_is_read(data: bytes, cuts: list[int]) -> None:
    assert recorded(data, cuts).size == len(data)


def test_a_line_without_end_is_bounded() -> None:
    found = recorded(b"x" * 200_000)
    assert [len(line) for line in found.lines] == [65536, 65536, 65536, 3392]


# One of each way to log: what two equal trainings print. «a¦b» differs between them.
ZOO = {
    "time": ["Epoch 3/10 - loss: 0.3421 - time: «2.31¦3.07»s", "done in «12.31¦13.07» seconds", "took «0.31¦0.35»"],
    "bare words": ["Elapsed: 0:00:«12.345¦13.072»", "Total time: «1m 2s¦59s»", "Wall clock «31.25¦30.01»"],
    "meters": ["Epoch: [0][10/100]\tTime  0.«123¦141» ( 0.«23¦31»)\tData 0.«01¦02» (0.«02¦03»)\tLoss 6.9 (6.8)"],
    "logging": ["2025-11-25 08:«12:33,123¦14:33,555» - root - INFO - loss 0.3"],
    "pycma": ["(3_w,6)-aCMA-ES (mu_w=2.0) in dimension 2 (seed=3, Tue Nov 25 08:«12:33¦14:33» 2025)"],
    "hydra": ["[2025-11-25 08:«12:33,123¦14:33,555»][__main__][INFO] - step 3 loss 0.3"],
    "glog": ["I1125 08:«12:33.123456 1234¦14:33.123456 99321» file.cc:12] hello 0.2"],
    "tensorflow": ["E0000 00:00:«1764058353.046459    1234¦1764058453.362026   99» cuda_dnn.cc:8310] Unable to register"],  # noqa: E501
    "epoch prefix": ["«1764058353.135¦1764058455.12» step 3 loss 0.3", "[«1764058353.135¦1764058455.12»] [x] hello"],
    "stamp": ["«20251125_081233¦20251125_081433» started", "load average: («13.9¦12.1», «1.5¦2.5»)"],
    "load": ["load average: «2.81¦1.5» «2.50¦1.2» «2.11¦0.9»"],
    "nccl": ["«node17:1234:5678¦node18:99:104» [0] NCCL INFO Bootstrap : Using eth0"],
    "loguru": ["2025-11-25 08:«12:33.123¦14:33.555» | INFO     | __main__:train:12 - loss 0.3"],
    "structlog": ["2025-11-25 08:«12:33¦14:33» [info     ] step                           loss=0.3 step=1"],
    "json lines": ['{"time": «1764058353.12¦1764058455.9», "loss": 0.3, "pid": «4242¦5353»}'],
    "absolute": ["«1764058353.12¦1764058455.9» start".replace("start", "")],
    "tqdm": ["100%|██████████| 10/10 [00:«00<00:00, 45.1¦01<00:00, 9.11»it/s, loss=0.3]"],
    "tqdm slow": ["100%|██████████| 10/10 [00:«10<00:00, 1.05s/it¦09<00:00, 1.1it/s»]"],
    "tqdm by rich": ["training 100% ━━━━ 40/40  [ 0:00:«00 < 0:00:00 , ?¦01 < 0:00:00 , 690» it/s ]"],
    "tqdm by rich, fast": ["training 100% ━━━━ 40/40  [ 0:00:00 < 0:00:00 , «727¦1,670» it/s ]"],
    "rich log": ["[08:12:33] epoch 2 at train.py:12", "«          ¦[08:12:34]» epoch 3 at train.py:12"],
    "rich handler": ["[11/25/25 08:12:33] INFO epoch 2", "«                   ¦[11/25/25 08:12:34]» INFO epoch 3"],
    "tqdm total": ["12it [00:«00, 45.1¦01, 9.11»it/s]"],
    "tqdm no total": ["12it [00:00, ?it/s]\r100it [00:«01, 88.1¦02, 50»it/s]"],
    "refreshes": ["\r 10%|█         | 1/10 [00:00<00:02, 3it/s]«\r 50%|█████     | 5/10¦»\r100%|██████████| 10/10 [00:03<00:00]"],  # noqa: E501
    "keras": ["938/938 ━━━━━━━━━━━━━━━━━━━━ «2s 2ms¦1s 987us»/step - accuracy: 0.87 - loss: 0.43"],
    "keras 2": ["10/10 [==============================] - «2s 2¦3s 3»ms/step - loss: 0.43"],
    "lightning": ["Epoch 0: 100%|██████████| 10/10 [00:00<00:00, «45.1¦40.2»it/s, v_num=«0¦1», train_loss=0.3]"],
    "lightning folder": ["Logging to lightning_logs/version_«0¦1»"],
    "transformers": ["{'train_runtime': «1.2¦1.3», 'train_samples_per_second': «33.1¦30», 'train_loss': 0.3}"],
    "sb3": ["|    fps             | «1234¦999»     |", "|    time_elapsed    | «1¦2»        |", "|    total_timesteps | 2048     |"],  # noqa: E501
    "skorch": [
        "  epoch    train_loss     dur",
        "-------  ------------  ------",
        "      1        0.6905  «0.0270¦0.0311»",
    ],
    "nvidia-smi": ["| N/A   «33C¦35C»    P0    «52W¦61W» / 400W |   «7501MiB¦4255MiB» / 81920MiB |     «28¦69»%      Default |"],  # noqa: E501
    "pandas": ["   epoch    loss   seconds", "0      1  0.5000  0.«000888¦000883»", "1      2  0.4000  0.«000788¦000783»"],  # noqa: E501
    "torch profiler": [
        "                 Name    Self CPU %      Self CPU    # of Calls  ",
        "     aten::as_strided         0.«18%      80.476¦16%      70.478»us           157  ",
    ],
    "stages": [
        "stage           time (s)       %",
        "training          0.«0281    56.7¦0317    60.1»",
        "total             0.«0495   100.0¦0505   100.0»",
    ],
    "fastai": ["epoch     train_loss  valid_loss  time    ", "0         0.500000    0.400000    00:«12¦13»"],
    "sklearn": ["[CV] END «....¦...»C=1; total time=   «0.1¦10.2»s"],
    "joblib": ["[Parallel(n_jobs=1)]: Done  10 out of  10 | elapsed:    «0.1¦0.2»s finished"],
    "lightgbm": ["[LightGBM] [Info] Auto-choosing row-wise multi-threading, the overhead of testing was 0.«000123¦000321» seconds."],  # noqa: E501
    "catboost": ["0:\tlearn: 0.6\ttotal: «46¦51.2»ms\tremaining: «1.2s¦900ms»"],
    "xgboost": ["[08:«12:33¦14:33»] INFO: src/learner.cc:3: x", "[0]\ttrain-rmse:0.3"],
    "hist": ["Fit 100 trees in «1.234¦2.001» s, (3100 total leaves)"],
    "optuna": ["[I 2025-11-25 08:«12:33,123¦14:33,555»] Trial 0 finished with value: 0.3 and parameters: {'x': 1.2}."],
    "optuna name": ["A new study created with name: no-name-«123e4567-e89b-12d3-a456-426614174000¦aaae4567-e89b-12d3-a456-42661417400b»"],  # noqa: E501
    "wandb": ["wandb: Syncing run «calm-river-42¦bold-sun-7»", "wandb: View run at https://wandb.ai/me/p/runs/«3f2k1a9d¦9z8y7x6w»"],
    "nanogpt": ["iter 10: loss 4.2000, time «123.45¦119.02»ms, mfu «30.21¦31.02»%"],
    "reprs": ["<__main__.Net object at 0x«7f1234567890¦7fabcdefabcd»>"],
    "paths": ["saved «/work/live-1¦/work/live-2»/model.pt", "wrote /tmp/tmp«ab12cd_x¦zz98xx_1»/a"],
    "own numbers": ["worker «4242¦5353» ready", "pool-1[«139644129278848¦139644200000000»] step 3 loss 0.3"],
    "pool workers": [
        "ThreadPoolExecutor-0_«1[139644129278848]¦3[139644200000000]» item 3 done",
        "[«ForkPoolWorker-1/4242¦ForkPoolWorker-12/5353»] item 4 done",
    ],
    "pids": ["worker pid «4242¦5353» started", "(pid=«4242¦5353») hello", "PID: «77¦88»"],
    "ports": ["listening on http://localhost:«43211¦51233»/", "master 127.0.0.1:«29500¦31022»"],
    "dicom": [
        "wrote 1.2.826.0.1.3680043.8.498.«63091403682396636888725¦50787062950850043295251»",
        "wrote out/2.25.«329800735698586629295641978511506172918¦132925110658790012345678».dcm",
    ],
    "rates": ["«1234.5¦1300.1» images/sec", "speed «1.2k¦900» tok/s", "«45¦39» samples per second"],
    "memory": ["GPU mem «1234¦1300» MB", "max memory allocated: «2.1¦2.2»GB", "cpu «30¦50»%"],
    "dates": ["Tue Nov 25 08:«12:33¦14:33» 2025", "started at 08:«12:33¦14:33»", "runs/Nov25_08-«12-33_node17¦14-33_node18»"],  # noqa: E501
    "a clock after a path": ["saved model.pt «1764058351.25¦1764058451.25»"],
    "deepspeed timers": ["time (ms) | fwd_microstep: «45.03¦46.10» | bwd: «90.10¦88.02» | loss: 0.3"],
    "stylegan": ["tick 1     kimg 0.1   sec/tick «1.345¦1.401»   maintenance «0.412¦0.301»  cpumem «0.31¦0.33»   augment 0.000"],  # noqa: E501
    "eta": ["step 10 | loss 0.3 | eta: 1 day, 2:«03:04¦07:09»", "ETA «01:20¦00:59»"],
    "relative": ["[   «0.123¦0.456»] INFO hello"],
    "speed": ["throughput: «1234¦1300.5»", "latency p99 «12.2¦13.1» ms ± «1.1¦2.2» ms"],
    "timm": ["Train: 1 [ 10/40 ( 25%)]  Loss: 2.1  Time: «0.246s,  260.17/s¦0.301s,  212.6/s» LR: 1.0e-02"],
    "means and deviations": [
        "Fast image access (ping: «0.3¦0.4»±«0.0¦0.1» ms, read: «22.6¦19.1»±«9.9¦8» MB/s, size: 1.5 KB)",
        "load «1.25¦1.5» +/- «0.25¦0.1» s",
        "accuracy: 0.91 ± 0.02",
        "inference time mean «0.31¦0.32» std «0.73¦0.74»",
        "latency «0.3¦0.4» (std «0.1¦0.2»)",
    ],
    "tqdm with scaled units": ["images: 100%|█████| 320/320 [00:00<00:00, «41.9Mit¦8.1kit»/s]"],
    "logging since start": ["epoch 1 (+«12.1¦13.4»ms)"],
    "underscores": ["logs in runs/2025_11_25_08_«12_33¦14_33»"],
    "compact UTC": ["finished 20251125T08«1233¦1433»Z"],
    "megatron": ["| throughput per GPU (TFLOP/s/GPU): «75.1¦73.9» | lm loss: 1.5E+00 |"],
    "attributes": ['<testcase classname="a" name="b" time="«0.013¦0.021»">'],
    "address of a socket": ["connected to ('127.0.0.1', «39005¦41003»)"],
    "datetime": ["{'started': datetime.datetime(2025, 11, 25, 8, «12, 33¦14, 33»), 'loss': 0.3}"],
    "ISO duration": ["duration PT0.0«17982¦16728»S, loss 0.5571"],
    "speedup": ["loss 0.5571, speedup: «60.47¦142.4»x, real-time factor: 0.0000«25¦35»"],
    "shares": ["time breakdown: data time «3.0¦3.4»%, forward time «61¦58»%"],
    "tensor time": ["time: tensor(0.«123¦321»)"],
}  # fmt: skip


def in_run(lines: list[str], run: int) -> str:
    return re.sub("«([^¦]*)¦([^»]*)»", lambda found: found[1 + run], "\n".join(lines)) + "\n"


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("stream", [STDOUT, STDERR])
def test_equal_trainings_print_the_same(name: str, stream: str) -> None:
    one, two = in_run(ZOO[name], 0), in_run(ZOO[name], 1)
    assert one != two
    found = differences(one, two, stream)
    allowed = {OutputKind.AMBIGUOUS} if name == "absolute" else set()
    assert {kind for kind, _, _ in serious(found)} <= allowed, found


@pytest.mark.parametrize("name", ZOO)
def test_a_result_that_differs_among_them_is_found(name: str) -> None:
    one, two = in_run([*ZOO[name], "final loss 0.25"], 0), in_run([*ZOO[name], "final loss 0.26"], 1)
    (first, *_) = differences(one, two)
    assert (first.kind, first.values) == (OutputKind.VALUE, ("0.25", "0.26"))
    assert first.decides


@pytest.mark.parametrize(
    ("a", "b", "kind", "values"),
    [
        ("loss 0.3", "loss 0.4", OutputKind.VALUE, ("0.3", "0.4")),
        ("loss: nan", "loss: 0.4", OutputKind.VALUE, ("nan", "0.4")),
        ("Epoch 1: loss=0.3 time=1.0s", "Epoch 1: loss=0.4 time=2.0s", OutputKind.VALUE, ("0.3", "0.4")),
        ("arrival_time 0.3", "arrival_time 0.4", OutputKind.VALUE, ("0.3", "0.4")),
        ("predicted travel time: 12.3s", "predicted travel time: 12.9s", OutputKind.VALUE, ("12.3s", "12.9s")),
        ("time (ms) | fwd: 4.50 | tokens: 48", "time (ms) | fwd: 4.61 | tokens: 49", OutputKind.VALUE, ("48", "49")),
        ("Episode finished after 12 timesteps", "Episode finished after 13 timesteps", OutputKind.VALUE, ("12", "13")),
        ("Total error within 0.0123", "Total error within 0.0124", OutputKind.VALUE, ("0.0123", "0.0124")),
        ("Test MAE: 0.412 s", "Test MAE: 0.413 s", OutputKind.VALUE, ("0.412 s", "0.413 s")),
        ("RSS: 1.25", "RSS: 1.26", OutputKind.AMBIGUOUS, ("1.25", "1.26")),
        ("##.#..##", "##..#.##", OutputKind.WORDS, ("##.#..##", "##..#.##")),
        ("准确率0.93", "准确率0.94", OutputKind.VALUE, ("0.93", "0.94")),
        ("9,0.25", "9,0.5", OutputKind.AMBIGUOUS, ("0.25", "0.5")),
        ("class 1 ####", "class 1 #####", OutputKind.WORDS, ("class 1 ####", "class 1 #####")),
        ("loss ▁▃▅▇", "loss ▁▂▅▇", OutputKind.WORDS, ("loss ▁▃▅▇", "loss ▁▂▅▇")),
        ("bits 0x3f0a12bc", "bits 0x3f0a12bd", OutputKind.VALUE, ("0x3f0a12bc", "0x3f0a12bd")),
        ("hash dee1d2588b4b4da0aaa086ec88aa6139", "hash 92753abbd017400b846e22173e5c9dc2", OutputKind.VALUE, None),
        ("w 1ee1d2588b4b1da01aa086ec88aa6139", "w 2ee1d2588b4b1da01aa086ec88aa6139", OutputKind.AMBIGUOUS, None),
        ("Saved to out/exp_4242_1", "Saved to out/exp_4243_1", OutputKind.WORDS, None),
        ("Best run: adam-deep-3", "Best run: adam-deep-4", OutputKind.WORDS, None),
        ("00:00:01,500 --> 00:00:04,000 a", "00:00:01,500 --> 00:00:04,250 a", OutputKind.VALUE, None),
        ("accuracy 93.2%", "accuracy 93.3%", OutputKind.VALUE, ("93.2%", "93.3%")),
        ("AUC 0.99 (95% CI 0.97-0.99)", "AUC 0.99 (95% CI 0.98-0.99)", OutputKind.VALUE, ("0.97", "0.98")),
        ("took 36 iterations to converge", "took 29 iterations to converge", OutputKind.VALUE, ("36", "29")),
        ("training took 12 of 30 patients", "training took 9 of 30 patients", OutputKind.VALUE, ("12", "9")),
        ("loss mean 0.3 std 0.1", "loss mean 0.3 std 0.2", OutputKind.VALUE, ("0.1", "0.2")),
        ("tensor([0.3, -0.4])", "tensor([0.3, -0.5])", OutputKind.VALUE, ("-0.4", "-0.5")),
        ("0.31", "0.32", OutputKind.AMBIGUOUS, ("0.31", "0.32")),
        ("-0.31", "-0.32", OutputKind.VALUE, ("-0.31", "-0.32")),
        ("conv1 ok", "conv2 ok", OutputKind.WORDS, ("conv1 ok", "conv2 ok")),
        (
            "saved ckpt/step-3.pt 5",
            "saved ckpt/step-4.pt 5",
            OutputKind.WORDS,
            ("saved ckpt/step-3.pt 5", "saved ckpt/step-4.pt 5"),
        ),
        ("model a", "model b", OutputKind.WORDS, ("model a", "model b")),
        ("{'a', 'b'}", "{'b', 'a'}", OutputKind.WORDS, ("{'a', 'b'}", "{'b', 'a'}")),
        ("one\ntwo", "one", OutputKind.WORDS, ("two", "")),
        ("elapsed 1.5s", "elapsed 3000.5s", OutputKind.VALUE, ("1.5s", "3000.5s")),
        ("Epoch 7/10 done", "Epoch 9/10 done", OutputKind.VALUE, ("7", "9")),
        ("1e-3", "1e-4", OutputKind.AMBIGUOUS, ("1e-3", "1e-4")),
        ("seed: 1764058353", "seed: 1764058453", OutputKind.VALUE, ("1764058353", "1764058453")),
        ("best 12 of 40", "best 13 of 40", OutputKind.VALUE, ("12", "13")),
        ("class 12: recall@20=0.31", "class 12: recall@20=0.32", OutputKind.VALUE, ("0.31", "0.32")),
        ("kept 93.2% of training samples", "kept 93.4% of training samples", OutputKind.VALUE, ("93.2%", "93.4%")),
        ("used 412 kWh, peak load 3.2", "used 412 kWh, peak load 3.4", OutputKind.VALUE, ("3.2", "3.4")),
        ("breakdown: train 61.2%", "breakdown: train 61.3%", OutputKind.VALUE, ("61.2%", "61.3%")),
        ("Best run 66de6b3", "Best run 27d12af", OutputKind.WORDS, ("Best run 66de6b3", "Best run 27d12af")),
        ("acc 0.93 ± 0.01", "acc 0.93 ± 0.02", OutputKind.VALUE, ("0.01", "0.02")),
        ("val_loss improved from 0.5 to 0.3", "val_loss improved from 0.5 to 0.4", OutputKind.VALUE, ("0.3", "0.4")),
    ],
)
def test_differences(a: str, b: str, kind: OutputKind, values: tuple[str, str] | None) -> None:
    found = differences(a, b)[0]
    values = values or (a, b) if kind is OutputKind.WORDS else values or found.values
    assert (found.kind, found.values) == (kind, values)
    assert compare(recorded(a.encode()), recorded(a.encode()), STDOUT, A, B) == []
    back = differences(b, a)[0]
    assert (back.kind, back.values) == (kind, values[::-1])


def test_a_line_that_is_not_in_the_columns_of_a_table_is_none_of_its_rows() -> None:
    table = "stage           time (s)\ntraining          0.0281\n"
    assert serious(differences(table + "loss  0.3", table + "loss  0.4"))[0][0] is OutputKind.VALUE


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (
            "    model       acc  fit_time\n0  logreg  0.927225  3.116607\n1    tree  0.801757  0.030512",
            "    model       acc  fit_time\n0  logreg  0.927225  3.372961\n1    tree  0.801757  0.031234",
        ),
        (
            "  model kernel       acc  fit_time\n0   svm    rbf  0.927225  3.116607",
            "  model kernel       acc  fit_time\n0   svm    rbf  0.927225  3.372961",
        ),
        (
            "[LightGBM] [Info] Auto-choosing col-wise multi-threading, the overhead of testing was 0.000063 seconds.\n"
            "You can set `force_col_wise=true` to remove the overhead.",
            "[LightGBM] [Info] Auto-choosing row-wise multi-threading, the overhead of testing was 0.000063 seconds.\n"
            "You can set `force_row_wise=true` to remove the overhead.\n"
            "And if memory is not enough, you can set `force_col_wise=true`.",
        ),
        ("took 0.5s, 412153 effective words/s", "took 0.6s, 542322 effective words/s"),
        ("训练完成,耗时3.21秒", "训练完成,耗时13.5秒"),
        ("训练时间: 12.34秒", "训练时间: 12.35秒"),
        ("Dauer: 3,4 s", "Dauer: 3,51 s"),
        ("Zeit 3.4", "Zeit 3.5"),
        ("==== 3 passed in 9.87s ====", "=== 3 passed in 10.12s ==="),
        ("_runtime ▁▃▅▇", "_runtime ▁▂▅▇"),
        ("Downloading ━━━━━━━ 4/4", "Downloading ━━━━━ 4/4"),
        ("<Net object at 0x5581f2c0>", "<Net object at 0x5581f2d0>"),
        ("Memory usage: 0.05MB, Peak was 0.09MB", "Memory usage: 0.06MB, Peak was 0.10MB"),
        ("# epoch loss time\n1 0.5 0.25", "# epoch loss time\n1 0.5 0.75"),
        ("throughput (tokens/sec/GPU): 1204.5", "throughput (tokens/sec/GPU): 1205.5"),
        ("  140462792779984: TensorSpec(shape=(3, 3))", "  139969564076048: TensorSpec(shape=(3, 3))"),
        ("Saved to out/exp_20251125-081233_4242", "Saved to out/exp_20251125-081413_5353"),
        (
            "new task id=offline-dee1d2588b4b4da0aaa086ec88aa6139",
            "new task id=offline-92753abbd017400b846e22173e5c9dc2",
        ),
        (
            "Log(run_id=24a04b53-b959-4dbf-a4df-c27b58356661, timestamp=UTC2025-11-25-08:12:33.253746)",
            "Log(run_id=a22243a8-a38f-4b4b-9829-7559fa2ed31b, timestamp=UTC2025-11-25-08:14:13.723687)",
        ),
    ],
)
def test_what_differs_and_is_no_result(a: str, b: str) -> None:
    assert not serious(differences(a, b))
    assert serious(differences(f"{a} loss 0.25", f"{b} loss 0.5"))


TIMES = "Stage timings (s)\nload 0.3{0}\nforest 0.1{0}\n"
IMPORTANCES = "Feature importance:\ntime 0.3{0}\nage 0.12\n"


@pytest.mark.parametrize("kept", [text.MOST_KEPT, 20, 0], ids=["kept", "below what is kept", "digested"])
@pytest.mark.parametrize(
    ("printed", "results"),
    [
        (TIMES, False),
        (TIMES + "\nforest 0.9{0}", True),  # a table of times ends at an empty line
        (TIMES + "all stages done\nforest 0.9{0}", True),  # or at a line of words
        ("Timings (s)\naccuracy 0.9{0}", True),
        ("Timings (s)\nload 0.3\nbest alpha 0.3{0}", True),
        ("Timings (s)\nload 0.3\nepoch 1 kappa 0.3{0}", True),  # no name of a stage
        ("Latency [ms]\np50 0.3{0} p95 0.4", False),
        ("Coefficients\nage 0.31\nthe fit took 0.3{0}", False),
        ("Timings: load 0.3{0} forest 0.1{0}", False),
        (IMPORTANCES, True),
        ("Times of all parts\ntime 0.3{0}\nage 0.12\n", False),
    ],
)
def test_a_heading_says_what_the_numbers_below_it_are(kept: int, printed: str, results: bool) -> None:
    with mock.patch.object(text, "MOST_KEPT", kept):
        found = differences(printed.format(1), printed.format(2))
    assert bool({one.kind for one in found} & {OutputKind.VALUE, OutputKind.AMBIGUOUS}) is results


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("age: p = 0.057 n.s.", "age: p = 0.043 *", OutputKind.VALUE),
        ("age 0.057", "age 0.001 ***", OutputKind.VALUE),
        ("age 0.05 *", "age 0.05", OutputKind.WORDS),
        ("age 0.057 up", "age 0.043 *", OutputKind.WORDS),
    ],
)
def test_a_mark_of_significance_hides_no_number(a: str, b: str, kind: OutputKind) -> None:
    assert [one.kind for one in differences(a, b)] == [kind]


LATEX = "Model & F1 & CI & Fit [s] \\\\ \\midrule\nRF & 0.9{0} & [0.8{1}, 0.9] & 0.1{2} \\\\ \\bottomrule"


@pytest.mark.parametrize(("digits", "result"), [("211", True), ("121", True), ("112", False)])
def test_a_table_of_latex_has_columns(digits: str, result: bool) -> None:
    found = {one.kind for one in differences(LATEX.format(*"111"), LATEX.format(*digits))}
    assert (OutputKind.VALUE in found, OutputKind.AMBIGUOUS in found) == (result, False)


def test_a_table_ends_at_an_empty_line() -> None:
    table = "epoch  time\n1  0.5\n"
    rows = [f"{table}{between}2  0.{digit}" for between in ("", "\n") for digit in (6, 7)]
    assert not serious(differences(*rows[:2]))
    assert serious(differences(*rows[2:]))


def test_a_difference_says_where() -> None:
    (found,) = differences("start\nstep 1 loss 0.3\nstep 2 loss 0.1", "start\nstep 1 loss 0.4\nstep 2 loss 0.2")
    assert (found.path, found.at, found.more, found.only_run) == (STDOUT, "line 2, loss", 1, 0)
    (found,) = differences("a", "a\nb\nc")
    assert (found.at, found.only_run, found.more, found.values) == ("line 2", 2, 1, ("", "b"))


def test_lines_of_stderr_are_listed_but_their_numbers_decide() -> None:
    (found,) = differences("Warning: slow", "", STDERR)
    assert (found.kind, found.decides, found.open) == (OutputKind.STDERR_LINES, False, False)
    (found,) = differences("loss 0.3", "loss 0.4", STDERR)
    assert found.decides


def test_long_texts_are_shown_from_before_they_differ() -> None:
    numbers = ", ".join(f"{number / 7:.6f}" for number in range(1500))
    (found,) = differences(f"loss: [{numbers}, 0.5]", f"loss: [{numbers}, 0.25]")
    assert (found.kind, found.values) == (OutputKind.VALUE, ("…0000, 214.142857, 0.5]", "…0000, 214.142857, 0.25]"))


def test_a_date_of_the_run_in_a_printed_path_is_none_of_its_results() -> None:
    a = "saving to runs/25-11-2025_08-12-33 and runs/2025-11-25-081233/a.pt"
    b = "saving to runs/25-11-2025_08-14-13 and runs/2025-11-25-081413/a.pt"
    assert serious(differences(a, b)) == []


def test_a_number_beyond_all_floats_is_text() -> None:
    genome = "01" * 200
    assert serious(differences(f"best genome 1{genome} in 0.31s\n", f"best genome 1{genome} in 0.42s\n")) == []


def test_secrets_are_not_shown() -> None:
    found = differences("token=12345 x", "token=54321 x", STDOUT) + differences("password=abc", "password=abd")
    assert not [value for one in found for value in one.values if re.search("12345|54321|ab", value)]


def test_ignored_text() -> None:
    assert serious(differences("id ab12\nloss 0.3", "id xy99\nloss 0.3"))
    assert not differences("id ab12\nloss 0.3", "id xy99\nloss 0.3", ignored=["^id .*"])
    assert not differences("q=0.1 loss 0.3", "q=0.2 loss 0.3", ignored=[r"q=\S+"])


WRITTEN = [
    f"[rank {rank}] step {step} loss {random.Random(rank * 100 + step).random():.4f} time {{}}s"
    for rank in range(3)
    for step in range(20)
]


@given(st.permutations(WRITTEN), st.permutations(WRITTEN), st.randoms())
@settings(max_examples=20)
def test_the_order_of_several_writers_does_not_count(a: list[str], b: list[str], chance: random.Random) -> None:
    one, two = (["".join(line.format(f"{chance.random():.3f}")) for line in side] for side in (a, b))
    assert not serious(differences("\n".join(one), "\n".join(two)))
    two[3] = re.sub(r"loss \S+", "loss 7.0", two[3])
    (first, *_) = serious(differences("\n".join(one), "\n".join(two)))
    assert first[0] is OutputKind.VALUE


def of_writers(writers: int, a: Sequence[str], b: Sequence[str]) -> list[tuple[OutputKind, str, tuple[str, str]]]:
    one, two = (msgspec.structs.replace(facts, writers=writers) for facts in (A, B))
    ours, theirs = (recorded("\n".join(side).encode()) for side in (a, b))
    return serious(compare(ours, theirs, STDOUT, one, two))


@given(st.integers(1, 4), st.lists(st.integers(0, 4), min_size=20, max_size=40), st.randoms())
@settings(max_examples=50)
def test_writers_explain_an_order_in_which_each_keeps_its_own(
    writers: int, turns: list[int], chance: random.Random
) -> None:
    # One process has two buffers, so that there is one more than there are processes and threads.
    turns = [turn % (writers + 1) for turn in turns]
    sides = []
    for _ in range(2):
        counts = [0] * (writers + 1)
        lines = []
        for turn in turns:
            counts[turn] += 1
            lines.append(f"writer {turn} line {counts[turn]} took {chance.random():.3f}s")
        sides.append(lines)
        chance.shuffle(turns)
    assert not of_writers(writers, *sides)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            ["Epoch 1/2 | val acc 91.67% | 0.01s", "Epoch 2/2 | val acc 93.00% | 0.01s"],
            ["Epoch 1/2 | val acc 90.00% | 0.01s", "Epoch 2/2 | val acc 93.00% | 0.02s"],
        ),
        (["crc32 of the predictions: 0x1234abcd"], ["crc32 of the predictions: 0x1234abce"]),
        (["use version_2 of the policy"], ["use version_3 of the policy"]),
        (["read gallery/img00012"], ["read gallery/img00013"]),
    ],
)
def test_what_only_looks_like_progress_or_an_identifier_decides(ours: list[str], theirs: list[str]) -> None:
    (first, *_) = of_writers(1, ours, theirs)
    assert first[0] in (OutputKind.VALUE, OutputKind.WORDS), first


def test_an_order_that_no_writers_explain_is_open() -> None:
    lines = [f"class {name}" for name in "abcd"]
    turned = lines[::-1]
    assert of_writers(1, lines, turned) == [
        (OutputKind.WORDS, "order of lines, from line 1", ("class a", "class d")),
    ]
    assert of_writers(3, lines, turned) == of_writers(0, lines, turned) == []
    assert of_writers(1, [*lines, "loss 0.5"], [*turned, "loss 0.6"])[0][0] is OutputKind.VALUE
    assert not of_writers(2, ["a", "b", "a", "b"], ["b", "a", "b", "a"])
    dated = [[f"2025-11-25 08:13:{seconds} {line}" for line in side] for side, seconds in ((lines, 11), (turned, 12))]
    assert of_writers(1, *dated)[0][1] == "order of lines, from line 1"
    timed = [[f"{line} took {seconds}s" for line in side] for side, seconds in ((lines, 0.25), (turned, 0.75))]
    assert not of_writers(1, *timed)  # what took longest comes first
    for one, two in (
        (["first: svm", "second: mlp"], ["first: mlp", "second: svm"]),
        (["cat 0.91 best", "dog 0.85 worst"], ["cat 0.91 worst", "dog 0.85 best"]),
        (["3", "5", "3"], ["3", "3", "5"]),
        (["cat", "dog", "bird"], ["dog", "cat", "bird"]),
        (["[[1. 2.]", " [3. 4.]", " [5. 6.]]"], ["[[1. 2.]", " [5. 6.]", " [3. 4.]]"]),
    ):
        assert of_writers(1, one, two), (one, two)
    numbered = [f"fold {number}: loss 0.{number}" for number in range(4)]
    assert of_writers(1, numbered, numbered[::-1])[0][1] == "order of lines, from line 1"
    listed = [f"{line} {number}.5" for number, line in enumerate(lines)]
    assert of_writers(1, listed, listed[::-1])[0][1] == "order of lines, from line 1"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("hello from 0\nhello from 1\n", "hello from 0hello from 1\n\n"),
        ("one two\nthree four\n", "one three four\ntwo\n"),
        ("rank 0 done\nall is well\n", "rank 0 doneall is well\n\n"),
    ],
)
def test_torn_lines_are_put_together(a: str, b: str) -> None:
    assert not serious(differences(a, b))


def test_line_ends_that_come_late_tear_nothing_that_differs() -> None:
    a = "worker 0 step 1\nworker 1 step 2\nworker 1 step 1\nworker 0 step 2\n"
    b = "worker 1 step 1worker 0 step 2\n\nworker 0 step 1worker 1 step 2\n\n"
    assert not serious(differences(a, b))
    assert serious(differences(a, b.replace("step 2", "step 3")))


def test_torn_lines_with_another_word_differ() -> None:
    assert serious(differences("hello from 0\nhello from 1\n", "hello from 0hello from 2\n\n"))


def test_how_often_progress_was_printed_does_not_count() -> None:
    a = "".join(f"progress {at}% [{at}/100] {at / 7:.1f} it/s\n" for at in range(1, 101, 1))
    b = "".join(f"progress {at}% [{at}/100] {at / 9:.1f} it/s\n" for at in range(10, 101, 10))
    assert not serious(differences(a, b))
    assert serious(differences(a, b[: b.rindex("progress")]))


def test_each_epoch_counts() -> None:
    a = "".join(f"Epoch {at}/9 loss {1 / at:.3f}\n" for at in range(1, 10))
    assert serious(differences(a, a.replace("0.250", "0.251"))) == [
        (OutputKind.VALUE, "line 4, loss", ("0.250", "0.251"))
    ]
    assert serious(differences(a, a[: a.index("Epoch 9")]))


LINES = [
    "2025-11-25 08:12:33,123 INFO step {} loss {:.4f} time {:.3f}s",
    "plain words",
    "conv{} µ cuda:{} loss {:.3f}",
    "|  fps | {}  |",
    "{} {:.3f} {:.3f}",
    "epoch  loss  time",
    "é µ {} at {:.3f} µs, {:.2f}",
    "",
    "version_{} <object at 0x7f12345678{}>",
    "1,234 of {} nan",
]


def some_lines(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [
        chance.choice(LINES).format(chance.randrange(99), chance.random(), chance.random() * 9).strip()
        for _ in range(count)
    ]


@given(st.integers(0, 10**6), st.lists(st.sampled_from([b"\xff\xfe 12", "é 3.5 ms", "12:30:05 x 1h 2m"]), max_size=3))
@settings(max_examples=30)
def test_what_is_not_kept_is_digested_as_what_is_kept(seed: int, more: list[str | bytes]) -> None:
    encoded = [line.encode() for line in some_lines(200, seed)] + [
        one.encode() if isinstance(one, str) else one for one in more
    ]
    data = b"\n".join(encoded) + b"\n"
    whole = recorded(data)
    now = mock.patch("time.time", return_value=A.ended)
    with now, mock.patch.object(text, "MOST_KEPT", 1000), mock.patch.object(text, "BLOCK", 32):
        cut = recorded(data)
        assert len(cut.lines) < len(whole.lines)
        assert cut.count == whole.count
        assert compare(cut, whole, STDOUT, A, A) == []
        assert compare(digested(whole, A), cut, STDOUT, A, A) == []
        assert compare(digested(cut, A), digested(whole, A), STDOUT, A, A) == []


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda line: "step 3 loss 0.123", OutputKind.WORDS),
        (lambda line: re.sub(r"loss \S+", "loss 9.9", line), OutputKind.VALUE),
        (lambda line: line.replace("layer2", "layer3"), OutputKind.WORDS),
        (lambda line: re.sub(r"time \S+", "time 0.001s", line), None),
        (lambda line: line[:-6] + "0.1115", OutputKind.AMBIGUOUS),
    ],
)
def test_differences_in_what_is_not_kept(change: object, kind: OutputKind | None) -> None:
    lines = [
        f"2025-11-25 08:12:33,123 layer2 step {n} loss {n / 7:.4f} time {n / 90:.3f}s | {n / 999:.4f}"
        for n in range(300)
    ]
    other = list(lines)
    other[250] = change(other[250])  # type: ignore[operator]
    with mock.patch.object(text, "MOST_KEPT", 1000), mock.patch.object(text, "BLOCK", 20):
        a, b = (recorded("\n".join(side).encode()) for side in (lines, other))
        found = compare(a, b, STDOUT, A, A)
    assert [one.kind for one in found] == ([kind] if kind else [])
    assert not found or found[0].at == "lines 241 to 260"


@pytest.mark.parametrize(
    ("label", "counts"), [("whirl", False), ("über whirl", True), ("whirl5", False), ("whirl2", True)]
)
@pytest.mark.parametrize("most", [1000, text.MOST_KEPT])
def test_what_its_user_says_is_measured_does_not_count(label: str, counts: bool, most: int) -> None:
    a, b = (msgspec.structs.replace(one, declared=Declared(measured=("Whirl", "*l5"))) for one in (A, B))

    def said(of: int, score: float = 0.5) -> Text:
        lines = (f"step {n} {label} {n / of:.4f} score {score}\n" for n in range(1, 90))
        return recorded("".join(lines).encode(), (), a)

    with mock.patch.object(text, "MOST_KEPT", most), mock.patch.object(text, "BLOCK", 20):
        first, second, other = said(7), said(8), said(7, 1.0)
    assert bool(serious(compare(first, second, STDOUT, a, b))) == counts
    assert serious(compare(first, other, STDOUT, a, b))
    assert bool(serious(compare(digested(first, a), second, STDOUT, a, b))) == counts


@pytest.mark.parametrize("most", [1000, text.MOST_KEPT])
@pytest.mark.parametrize(("declared", "counts"), [(Declared(), False), (Declared(("step time",), ("step*",)), True)])
def test_what_its_user_says_is_a_result_counts(declared: Declared, counts: bool, most: int) -> None:
    a, b = (msgspec.structs.replace(one, declared=declared) for one in (A, B))

    def said(of: int) -> Text:
        return recorded("".join(f"step time {1 + n / of:.4f} s, dice 0.5\n" for n in range(1, 90)).encode(), (), a)

    with mock.patch.object(text, "MOST_KEPT", most), mock.patch.object(text, "BLOCK", 20):
        first, second = said(7), said(8)
    assert bool(serious(compare(first, second, STDOUT, a, b))) == counts
    assert bool(serious(compare(digested(first, a), second, STDOUT, a, b))) == counts


def test_a_time_in_brackets_is_a_column_of_a_log_if_it_is_one_of_the_run() -> None:
    assert [one.values for one in differences("[06:05:33] bus 3\n", "[19:22:12] bus 3\n")] == [("06:05:33", "19:22:12")]
    assert serious(differences("[06:05:33] bus 3\n", "[06:05:33] bus 3\n")) == []
    now = (
        time.strftime("[%H:%M:%S] bus 3\n", time.gmtime(A.started)),
        time.strftime("[%H:%M:%S] bus 3\n", time.gmtime(B.started)),
    )
    assert differences(*now) == []


def test_many_blocks_are_merged() -> None:
    lines = [f"step {n} loss {n / 7:.4f}" for n in range(2000)]
    with (
        mock.patch.object(text, "MOST_KEPT", 100),
        mock.patch.object(text, "BLOCK", 10),
        mock.patch.object(text, "MOST_BLOCKS", 16),
    ):
        a, longer = recorded("\n".join(lines).encode()), recorded("\n".join([*lines, *lines]).encode())
        assert len(a.blocks) <= 17
        assert len(longer.blocks) <= 17
        assert {one.kind for one in compare(a, longer, STDOUT, A, A)} >= {OutputKind.WORDS}
        other = recorded("\n".join([*lines[:1500], "step 1500 loss 0.5", *lines[1501:]]).encode())
        (found,) = compare(a, other, STDOUT, A, A)
        assert found.kind is OutputKind.VALUE


def test_lines_of_a_file() -> None:
    assert text_of(["a", "b 0.1"]).lines == ("a", "b 0.1")
    assert compare(text_of(["a 0.1"]), text_of(["a 0.1"]), "log.txt", A, B) == []


@given(st.lists(st.text(max_size=40), max_size=10), st.lists(st.text(max_size=40), max_size=10))
def test_any_two_texts_can_be_compared(a: list[str], b: list[str]) -> None:
    found = differences(
        "\n".join(a).encode("utf-8", "replace").decode(), "\n".join(b).encode("utf-8", "replace").decode()
    )
    assert all(isinstance(one, OutputDifference) for one in found)


def test_lines_that_are_too_different_to_be_read_are_open() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = [f"{random.Random(n).choices(letters, k=8)} {n} loss 0.5" for n in range(300)]
    other = [*lines[:250], lines[250].replace("0.5", "0.6"), *lines[251:]]
    with mock.patch.object(text, "MOST_KEPT", 100), mock.patch("detaudit.outputs.lines._MOST_SHAPES", 50):
        a, b = (recorded("\n".join(side).encode()) for side in (lines, other))
        assert compare(a, recorded("\n".join(lines).encode()), STDOUT, A, A) == []
        assert [one.kind for one in compare(a, b, STDOUT, A, A)] == [OutputKind.AMBIGUOUS]


def test_columns_are_told_by_their_rules() -> None:
    row = "| {:<9} | {:<6} | {:<5} | {:<5} |"
    table = [row.format("Action", "Mean (s)", "Calls", "Total (s)"), row.format("Total", "-", "10", "{}")]
    a, b = ("\n".join(table).format(value) for value in ("0.1234", "0.2345"))
    assert serious(differences(a, b)) == []
    assert serious(differences(a, a.replace("10 ", "11 "))) == [(OutputKind.VALUE, "line 2, Calls", ("10", "11"))]


TABLES = {
    "blanks": "model     r2  fit_time\nridge  {}     {}",
    "markdown": "| model | r2 | fit_time |\n|---|---|---|\n| forest5 | {} | {} |",
    "polars": (
        "┌───────┬─────┬──────────┐\n│ model ┆ r2  ┆ fit_time │\n│ ---   ┆ --- ┆ ---      │\n"
        "│ str   ┆ f64 ┆ f64      │\n╞═══════╪═════╪══════════╡\n│ a5    ┆ {} ┆ {} │\n└───────┴─────┴──────────┘"
    ),
    "duckdb": "│  r2  │ fit_time │\n│ double │ double │\n├──────┼──────┤\n│ {} │ {} │",
    "double": "║ model ║ r2 ║ fit_time ║\n║ a5 ║ {} ║ {} ║",
    "an empty column": "│ model │ r2 │ fit_time │ best │\n│ a5 │ {} │ {} │      │",
    "jira": "|| model || r2 || fit_time ||\n| forest5 | {} | {} |",
}


@pytest.mark.parametrize("table", TABLES.values(), ids=[*TABLES])
@pytest.mark.parametrize("kept", [text.MOST_KEPT, 0])
def test_names_of_columns_may_have_digits(table: str, kept: int) -> None:
    texts = ("0.970204", "0.0764"), ("0.970204", "0.0832"), ("0.981782", "0.0764")
    with mock.patch.object(text, "MOST_KEPT", kept):
        one, slower, other = (recorded(table.format(*values).encode()) for values in texts)
        assert not any(found.decides or found.open for found in compare(one, slower, STDOUT, A, B))
        found = compare(one, other, STDOUT, A, B)[0]
    assert found.decides
    assert found.at.endswith(", r2") or not kept


@pytest.mark.parametrize("header", ["epoch 1  loss 2", "12s  5MB", "2025-11-25T08:12  3e-4x"])
def test_numbers_beside_words_are_no_names_of_columns(header: str) -> None:
    assert serious(differences(f"{header}\n0.5  0.25", f"{header}\n0.5  0.75"))


def test_columns_may_be_empty_in_a_row() -> None:
    table = [
        "  epoch    train_loss    valid_acc    cp     dur",
        "-------  ------------  -----------  ----  ------",
        "      1        2.2898       0.4250     +  0.0706",
        "      2        1.9201       0.6250        {}",
    ]
    a, b = ("\n".join(table).format(value) for value in ("0.0706", "0.0743"))
    assert serious(differences(a, b)) == []
    assert serious(differences(a, a.replace("0.6250", "0.6500"))) == [
        (OutputKind.VALUE, "line 4, valid_acc", ("0.6250", "0.6500"))
    ]


def test_what_is_printed_onto_the_progress_of_keras_is_alone() -> None:
    line = "{}/44 ━━━━━━━━━━ 0s 3ms/step - accuracy: {} - loss: {}epoch 0 of {}\n"
    end = "44/44 ━━━━━━━━━━ 1s 5ms/step - accuracy: 0.3100 - loss: {}\n"
    a, b = line.format(33, 0.2614, 2.2182, 3) + end, line.format(31, 0.2540, 2.2243, 3) + end
    assert serious(differences(a.format(2.1), b.format(2.1))) == []
    assert serious(differences(a.format(2.1), b.format(2.2)))
    assert serious(differences(a.format(2.1), line.format(31, 0.2540, 2.2243, 4) + end.format(2.1)))
    assert serious(differences("epoch 0 of 3\n" + end.format(2.1), b.format(2.1))) == []


def test_a_warning_on_the_line_of_a_bar_is_alone() -> None:
    line = "train: {}%|████▎     | {}/14 [00:00<00:00, {}it/s, loss={}]/a/b.py:7: UserWarning: {}\n"
    one, other = line.format(43, 6, 25.11, 0.3, "no"), line.format(50, 7, 32.5, 0.2, "no")
    assert serious(differences(one, other, STDERR)) == []
    done = line.format(100, 14, 25.11, "{}", "no")
    assert serious(differences(done.format(0.3), done.format(0.2)))


def test_what_follows_a_count_in_brackets_has_its_name() -> None:
    line = "INFO:     {} [2]            : ({}, {})\n"
    assert (
        serious(differences(line.format("eval_runtime", 0.0214, 0.0259), line.format("eval_runtime", 0.0261, 0.0272)))
        == []
    )
    found = serious(differences(line.format("eval_loss", 0.69, 0.7), line.format("eval_loss", 0.69, 0.71)))
    assert [(kind, values) for kind, _, values in found] == [(OutputKind.VALUE, ("0.7", "0.71"))]


def test_identities_of_threads_are_those_of_a_run() -> None:
    line = "<_MainThread(MainThread, started {})>"
    assert serious(differences(line.format(140379565321088), line.format(140379565329280))) == []


def test_a_row_may_end_in_a_text() -> None:
    head = "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)"
    row = "      3/1    {}    0.000    0.002    0.000 module.py:1482(_call)"
    a, b = (f"{head}\n{row.format(value)}" for value in ("0.001", "0.011"))
    assert serious(differences(a, b)) == []
    assert serious(differences(a, a.replace("3/1", "4/1"))) == [(OutputKind.VALUE, "line 2, ncalls", ("3", "4"))]


def test_a_table_may_have_names_in_its_rows() -> None:
    table = "| metric | value |\n|---|---|\n| training time (s) | {} |\n| accuracy | {} |"
    assert serious(differences(table.format(1.25, 0.5), table.format(1.75, 0.5))) == []
    found = differences(table.format(1.25, 0.5), table.format(1.25, 0.6))
    assert serious(found) == [(OutputKind.VALUE, "line 4, accuracy", ("0.5", "0.6"))]


def test_torn_lines_that_look_like_whole_ones_are_put_together() -> None:
    a = "worker 0 step 1 done\nworker 2 step 3 done\nworker 1 step 3 done\n"
    b = "worker 0 worker 2 step 3 done\nstep 1 done\nworker 1 step 3 done\n"
    assert serious(differences(a, b)) == []
    assert serious(differences(a, b.replace("step 1", "step 4"))) != []
    assert serious(differences("a 1\nb 2\n", "a 2\nb 1\n")) != []


def test_other_lines_that_are_torn_with_the_same_words_are_put_together() -> None:
    a = "item 1 doneitem 2 done\n\nitem 3 done\nitem 4 done\n"
    b = "item 3 doneitem 4 done\n\nitem 1 done\nitem 2 done\n"
    assert serious(differences(a, b)) == []
    assert serious(differences(a, b.replace("item 2", "item 5"))) != []
    overlapping = "item 1 doneitem 3 done\n\nitem 2 done\nitem 4 done\n"
    assert serious(differences(a, overlapping)) == []
    three = "item 1 doneitem 3 doneitem 4 done\n\n\nitem 2 done\n"
    assert serious(differences(a, three)) == []
    more = "item 1 doneitem 4 done\n\nitem 3 doneitem 2 done\n\n"
    assert serious(differences(a + "item 5 done\n", more + "item 5 done\n")) == []
    assert serious(differences(a + "item 5 done\n", more + "item 6 done\n")) != []
    assert serious(differences("accuracy 0.91\n1\n\n", "accuracy 0.9\n11\n\n")) != []
    assert serious(differences("a 1 b 2\na 2\nb 1\n", "a 2 b 1\na 1\nb 2\n")) != []


def test_the_address_of_an_object_is_no_result_under_its_name() -> None:
    assert serious(differences("model id 139987386192080\n", "model id 140304809496912\n")) == []
    assert serious(differences("total 139987386192080\n", "total 140304809496912\n")) != []


def test_the_name_of_a_column_says_more_than_that_of_a_row() -> None:
    table = "| Action | Mean time (s) | Calls |\n| MyTimer.reset | {} | {} |"
    assert serious(differences(table.format("1.4e-06", 3), table.format("1.5e-06", 3))) == []
    assert serious(differences(table.format("1.4e-06", 3), table.format("1.4e-06", 4))) != []


def test_names_of_files_in_prose_are_compared_as_those_of_files_are() -> None:
    line = "best tb/logs/version_{}/epoch=3-loss={}.ckpt lr 0.002"
    second = msgspec.structs.replace(B, numbered=(("tb/logs/version_1", "tb/logs/version_0"),))
    same = compare(recorded(line.format(0, 6.8).encode()), recorded(line.format(1, 6.8).encode()), STDOUT, A, second)
    assert [one.kind for one in same] == [OutputKind.IDENTIFIER]
    assert serious(
        compare(recorded(line.format(0, 6.8).encode()), recorded(line.format(1, 6.9).encode()), STDOUT, A, second)
    )
    stamp = "saved to out/{}/model_{}.pt"
    assert serious(differences(stamp.format(1764058355, 1), stamp.format(1764058455, 1))) == []
    assert serious(differences(stamp.format(1764058355, 1), stamp.format(1764058455, 2))) != []


def test_a_label_is_shown_with_the_digits_of_its_line() -> None:
    assert [at for _, at, _ in serious(differences("s5: 0.41 m", "s5: 0.42 m"))] == ["line 1, s5"]
    assert serious(differences("run 66de6b3 finished", "run 27d12af finished")) == []


def test_the_age_of_a_file_by_a_clock_that_counts_is_no_result() -> None:
    first, second = (
        RunFacts(started=one, ended=one + 6, counted=True, shift_s=-28818376.0) for one in (1796e6, 1796e6 + 9)
    )
    a, b = text_of(["age -28818376.23 -28818377"]), text_of(["age -28818385.18 -28818386"])
    assert [one.kind for one in compare(a, b, STDOUT, first, second)] == []
    assert [one.kind for one in compare(a, b, STDOUT, A, B)] == [OutputKind.VALUE]
