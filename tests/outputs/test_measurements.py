"""What is a measurement, by name and value together."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detaudit.model.outputs import Role, RunFacts
from detaudit.outputs.measurements import array_role, masked, role, words

FACTS = RunFacts(
    started=1764058350.0,  # 2025-11-25 08:12:30 UTC
    ended=1764058400.0,
    pids=frozenset({4242, 17}),
    ports=frozenset({43121}),
    names=("/home/ann/project", "node17", "ann"),
)

MEASUREMENTS = """
xRT|31.2
x|31.2 GFLOPS
parallel efficiency|0.93
logging overhead|0.03
patients_per_s|31.2
TT (Sec)|0.31
Δmem|28.1
temps d'entraînement|3.21
tempo di esecuzione|3.21
czas treningu|3.21
время обучения|3.21 сек
Speicherverbrauch|312 MB
total_runtime|00h:00m:03s
checkpoint age|0.3s
ips|12.3 images/s
gpu.utilization|45
system.disk|45
timings.disk|0.31
peak_latency|12
latency.value|0.31
swap|512.5 MB
peak_time_s|1.25
function augment, self_ms|4.1
llm_log.ms|397.3
gpu.temp_c|61
timings.augment|3.4
read_mb_s|1812.4
samples_s|393.7
throughput_img_s|8120
tiempo_entrenamiento_s|18.2
Tiempo de ejecución|0:00:27.1
num_env_steps_sampled_throughput_per_sec|4925.7
speed-up|1.5
显存峰值|3.21 GB
Performance|41.2 ns/day
tracker runs at|48.2 fps
traceEvents[0].dur|88.4
ts_epoch|1764058355194
|1764058355193122
system.threads|12
callbacks.Timer.time_elapsed.train|0.105
catboost_training.iterations[0].remaining_time|1.139355554
record.elapsed.repr|0:00:00.013714
sample_stats/perf_counter_diff|0.0012
sample_stats/process_time_diff|0.0012
posterior@sampling_time|1.25
DeviceStatsMonitor.on_train_batch_start/cpu_vm_percent|5.1
mean_fit_time, metric_value|0.0266
time|2.3
elapsed|12
elapsed_time|12.5
time_elapsed|12
runtime|3
train_runtime|12.25
eval_runtime|0.5
train_samples_per_second|900.5
train_steps_per_second|12
sec_per_epoch|3.1
secPerEpoch|3.1
images_per_sec|5000
imagesPerSec|5000
img/s|310
samples/s|45
samples_sec|45
tokens_per_second|12000
tok/s|2.5
it/s|45.1
s/it|0.02
ms/step|12
epoch_times|2.1
epoch_times.npy|2.1
epoch_time.3|2.1
latency_ms|12.1
latency.p99|0.1
p99_latency_ms|30
eta|99999
eta_seconds|123456
time_remaining|0:12:34
训练时间|12.5
monitor.t elapsed|0.0329
耗时|12.5
每轮用时|12.5
学習時間|12.5秒
Zeit|12.5
Trainingsdauer|12.5
log.relativeCreated|1204.5
start_time|1764058360.5
start_time|1764058360123
train_start_time|12.5
data.ep_info_buffer.serialized.3.t|0.0329
wall_clock|3
wall|3
wallTime|3
wall_time|1764058360.5
walltime|3
mean_fit_time|0.2
std_fit_time|0.002
mean_score_time|0.2
refit_time_|0.2
split0_fit_time|0.2
fit_time_ms|200
forward_ms|3.5
step_s|0.01
took|3.4
took_s|3.4
time_taken|3.4
total_time_s|40
cpu_time|400
user_time|90
time/fps|300
time/time_elapsed|12
time_this_iter_s|1.2
time_total_s|20
timers/sample_time_ms|3.4
timings.forward|0.01
time.forward|0.01
stats.time.mean|3.2
row 3, time|2.2
row 12, train_time|2.2
dur|0.027
loss_time|0.1
data_time|0.001
batch_time|0.1
data_loading_time|0.1
compile_time_s|12
step_time|0.1
inference_time|0.1
time_per_step|0.1
time to first token|0.1
ttft|0.1
throughput|5000
train_throughput|5000
fps|60
FPS|60
qps|60
wps|12345
ups|1.2
mfu|30.5
tflops|12.5
TFLOPs|12.5
gpu_memory_mb|1234
GPU mem (MB)|1234
max_memory_allocated|123456789
peak_mem|1234
memory|123
memory_reserved|123
memory_usage|123
mem_used|123
rss|123456
gpu_util|30
gpu_utilization|30%
cpu_percent|3.2
cpu|30%
perf/cpu_util_percent|3.2
gpu_power_w|250
gpu_temperature|44
timestamp|1764058360
_timestamp|1764058360.25
timestamp_ms|1764058360250
commit_timestamp_nsecs|1764058360250000000
created_at|2025-11-25T08:12:45Z
created|2025-11-25T08:12:45.123456+00:00
date|2025-11-25
date|2025-11-25_08-12-33
datetime|2025-11-25 09:12:45
started|2025-11-25 03:12:45
saved_at|1764058351.2
end_time|1764058399
start_time|08:12:31
mtime|1764058355
time|Tue Nov 25 08:12:33 2025
|2025-11-25 08:12:45,123
|2025-11-25T08:12:45.123Z
|Tue Nov 25 08:12:33 2025
|Tue, 25 Nov 2025 08:12:33
|08:12:45
|0:00:12.345
|12.3ms
|3.2s
|45it/s
|1.2k tok/s
|12 images/sec
|2 ms/step
duration|0:00:12
train_wall|12
nvlink_bandwidth|900
checkpoint_save_time|0.5
network_bandwidth|900
created_at|2461004.8423
started|datetime.datetime(2025, 11, 25, 8, 12, 45, 17)
duration|PT0.017982S
real-time factor|0.0131
speedup|142.4
rtf|0.013
ru_utime|0.9
ru_nvcsw|120
ru_maxrss|239224
Maximum resident set size (kbytes)|239224
sec/kimg|0.4
timings.phases.load|0.0147
|260.17/s
data time|3.0%
remaining|1.2s
speed_samples_per_second|34
"""

IDENTIFIERS = """
port|43999
span_id|00f067aa0ba902b7
run_id|8530403b
job_id|1234567d
session_id|123e4567
Worker(salt|166248354
model_info.model_guid|71d586ec-a5a94414-90bce24b-1b887b0a
Started run with ID|1
owner|<__main__.Net object at 0x7f3a5c1e2d60>
pointer|0x7f3a5c1e2d60
id|#T_1a2b3_row0_col1
url|tcp://127.0.0.1:43121
url|tcp://10.0.0.12:43125
worker|node-4242
exp_id|ab12
|4242
|43121
pid|99999
PID|12
process_id|99
port|50123
run_id|3f2k1a9d
run_name|calm-river-42
experiment_id|876543
v_num|3
session_id|abc
hostname|worker-9
|node17
cwd|/home/ann/project
path|/home/ann/project/model.pt
user|ann
|123e4567-e89b-12d3-a456-426614174000
id|123e4567-e89b-12d3-a456-426614174000
fn|<function f at 0x7f12345678>
model|<torch.nn.Linear object at 0x7f1234567890>
|0x7f1234567890
|139644129278848
thread|281473456789696
steps.0.1._stop_words_id|140228367334368
owner_address|94008367334416
file|/tmp/tmpab12cd_x
file|/tmp/tmpab12cd_x/model.pt
dir|outputs/2025-11-25/08-12-33
dir|runs/Nov25_08-12-33_node17
dir|lightning_logs/version_3
dir|wandb/run-20251125_081233-3f2k1a9d
name|run_20251125_081233
dir|runs/mlp_1125_081233
dir|runs/251125-081233
dir|runs/25-11-2025_08-12-33
dir|runs/11-25-2025_08-12
dir|runs/2025-11-25-081233
dir|runs/run_20251125T081233_302296
dir|work-20251125T081233302296
dir|work-20251125081233302
dir|runs/3f2k1a9d
cells[0].id|28830b2d
dir|runs/2025_11_25_08_12_33
file|events.out.tfevents.1764058355.node17.4242.0
"""

OPEN = """
IPS|0.5906
src_encode_ms|3.5
time ratio|1.5161
effective_duration|1.58
modified duration|1.58
time to peak|1.25
time value|1.25
swap|0.031
results.disk|0.88
PSS|12.5
timing/val_loss|0.2542
pred_time|0.25
time remaining|3.1
预约时间|1.25
call_duration|1.25
token_durations|0.25
remaining_time|4000
time_remaining|4000
start_time|1.25
word_end_time|1.25
subtitle_start_time|00:00:01
tps|12
Output|21.4 °C
total_spent|12.5
rss|1.25
eta|0.0927
GFLOPs|2.32
bandwidth|900
energy_kwh|0.001
emissions|0.0001
codebook.utilization|0.31
|2.347819232986450
|0.5
|1764058360
dt|0.1
speed|3.1
frobnication_time|3.1
time|400.5
quux_duration|3.1
|12.0
"""

RESULTS = """
output|4.5 L/min
infusion rate|3.12 ml/h
swing_time|0.41 s
mean QTc|412.3 ms
braking time|2.12 s
best_eta|0.0927
plan.port|3
most_influential.study_name|ASCOT
time feature importances|0.31
patient age|0.3
eta2|0.31
partial_eta_squared|0.31
best: run|4
dst_port|443
log_age|3.4
selected.trial_id|4
weights_min|0.02
prices_min|3.2
volume_min|0.5
case_h|0.5
temps|21.3
toc|6.4
rt_loss|0.3
net|0.4
mean RT|312
onsets|0.4
bootstrap mean|0.74 s
predicted time of candidate|23.4 ms
tau_fast|2.12 ns
speed|63.8 km/h
benchmarks.glue.stats.accuracy|0.83
reaction.ms|312.5
seed|1764058355194
ts_epoch|1764158355194
Best run with ID|3
metrics_gpu.val_loss|0.2542
results_cpu.accuracy|0.93
iou.wall|0.31
recall.s|0.31
soc|0.81
FPs|12
state|0x3f0a12bc
weights|0x3fe3333333333333
dir|runs/25-11-2024_08-12-33
predicted_eta_min|31.25
predicted_port|8080
root_cause_process|4243
episode_durations|12
steps_per_day|3.5
rmse|0.4 s
hard.hardest_frame|12345_00345
policy.machine.processes|12
policy.machine.threads|12
best_run_name|calm-river-42
processes_flagged|12
processes|4242000
threads|12
samples remaining|4521
system_load|0.3
core_temp|44
username|bob
total|140228367334368
customer_id|140228367334367
backbone|timm/resnet50
image|gallery/img00012
policy|version_2
feature|temperature
column|temp_evening
layer|temporal_conv
loss_s|0.31
loss_ms|3
val_loss_min|0.1
grad_s|0.2
loss|0.3
val_loss|2.31
train/loss|0.3
acc|0.9
accuracy|93%
auc|0.99
f1|0.8
lr|0.001
learning_rate|0.001
error_rate|0.1
epoch|3
step|100
score|0.5
grad_norm|0.2
mean|3.2
std|0.1
total_flos|1e12
flops|12
arrival_time|12.0
mean_lifetime_|3.2
half_time_|3.2
survival_time|3.2
travel_time|12
trip_duration|12
delivery_time_min|12
time_of_flight|3
time_to_event|3
time_to_failure|3
time_steps|10
timesteps|10
timestep|3
time/iterations|3
time/total_timesteps|2048
time_embedding|0.2
time_embed.weight|0.2
time_mixing.weight|0.2
n_times|3
num_times|3
memory_size|3
memory_bank|0.3
replay_memory|0.3
date_of_birth|2025-11-25
birth_date|2025-11-25
order_date|2025-11-25
wind_speed|3.1
car_speed|3.1
max_speed|3.1
miles_per_hour|3.1
beats_per_minute|70
m/s|3
seconds_to_event|3
second_moment|0.3
section|3
secret_sauce|0.3
timely|1
sometimes|3
latent.0|0.3
temperature|0.7
power|2
rate|0.3
dropout_rate|0.1
time_loss|0.1
time_mse|0.3
duration_loss|0.3
latency_loss|0.3
runtime|99999.5
elapsed|60000.5
time|-1.0
time|nan
latency_ms|200000
date|2019-01-01
timestamp|1500000000
created_at|2031-01-01T00:00:00Z
seed|1764058360
random_seed|4242
start_seed|12
digest|4242
sha256|123e4567
|12
|-0.5
|200.5
|nan
|30%
accuracy|30%
|200s
|hello
|09:22:45
target|3.41
row 3, target|3.41
optimizer.state.0.exp_avg|0.1
model_size_mb|12
file_size|1000
|99.5e9
prediction|12.5
day|12
min|0.1
max|0.9
ms|hello
model|/home/someone/else
name|calm river
weight_decay|0.01
momentum|0.9
clock_loss|0.3
cat|17
|139644129278849
samples_seen|39644129278848
words_count|40
num_gpus|2
ids|3
id|3
"""


def cases(table: str) -> list[tuple[str, str]]:
    found = []
    for line in table.strip("\n").splitlines():
        name, _, value = line.partition("|")
        found.append((name, value))
    return found


TABLE = [
    (name, value, one)
    for one, table in (
        (Role.MEASUREMENT, MEASUREMENTS),
        (Role.IDENTIFIER, IDENTIFIERS),
        (Role.OPEN, OPEN),
        (Role.RESULT, RESULTS),
    )
    for name, value in cases(table)
]


@pytest.mark.parametrize(("name", "value", "expected"), TABLE)
def test_roles(name: str, value: str, expected: Role) -> None:
    assert role(name, value, FACTS) is expected


@pytest.mark.parametrize(
    ("name", "least", "most", "expected"),
    [
        ("epoch_times", 0.1, 3.0, Role.MEASUREMENT),
        ("epoch_times.npy", 0.1, 3.0, Role.MEASUREMENT),
        ("epoch_times", 0.1, 3000.0, Role.MEASUREMENT),
        ("epoch_times", 0.1, 300000.5, Role.RESULT),
        ("epoch_times", -0.1, 3.0, Role.RESULT),
        ("images_per_sec", 1.0, 1e6, Role.MEASUREMENT),
        ("arrival_time", 0.1, 3.0, Role.RESULT),
        ("half_time_", 0.1, 3.0, Role.RESULT),
        ("survival.csv/time", 1.0, 400.0, Role.OPEN),
        ("survival.csv/survival_time", 1.0, 4.0, Role.RESULT),
        ("timestamp", 1764058351.0, 1764058399.0, Role.MEASUREMENT),
        ("timestamp", 1500000000.0, 1764058399.0, Role.RESULT),
        ("quux_time", 0.1, 3.0, Role.OPEN),
        ("preds", 0.1, 0.9, Role.RESULT),
        ("", 0.1, 0.9, Role.RESULT),
        ("epoch_times", math.nan, math.nan, Role.RESULT),
        ("pid", 100, 4000, Role.IDENTIFIER),
    ],
)
def test_roles_of_arrays(name: str, least: float, most: float, expected: Role) -> None:
    assert array_role(name, least, most, FACTS) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean_fit_time", ["mean", "fit", "time"]),
        ("trainTimeMs", ["train", "time", "ms"]),
        ("GPUMemoryMB", ["gpu", "memory", "mb"]),
        ("num GPUs", ["num", "gpus"]),
        ("TFLOPs", ["tflops"]),
        ("conv1.weight", ["conv", "weight"]),
        ("step/12", ["step"]),
        ("", []),
    ],
)
def test_words(name: str, expected: list[str]) -> None:
    assert words(name) == expected


def test_a_clock_that_a_variation_moved_is_one_of_the_run() -> None:
    shifted = RunFacts(started=FACTS.started, ended=FACTS.ended, shift_s=40 * 86400.0)
    assert role("date", "2026-01-04 08:12:45", shifted) is Role.MEASUREMENT
    assert role("date", "2026-01-04 08:12:45", FACTS) is Role.RESULT
    assert role("date", "2025-11-25 08:12:45", shifted) is Role.MEASUREMENT


@pytest.mark.parametrize("text", ["11.12.2026 07:28", "12/11/2026 07:28", "11/12/2026 07:28", "11.12.26"])
def test_a_date_in_numbers_is_read_as_the_day_of_the_run(text: str) -> None:
    december = RunFacts(started=1796974000.0, ended=1796974200.0)  # 2026-12-11 07:26:40
    assert role("", text, december) is Role.MEASUREMENT
    assert role("", text, FACTS) is Role.RESULT
    assert role("", "31.12.2026", december) is role("", "13/13/2026", december) is Role.RESULT


@pytest.mark.parametrize("clock", ["19:27:55", "19:27", "2026-12-06 19:27:55", "1796585275.25"])
def test_every_form_of_a_moved_clock_is_known(clock: str) -> None:
    began = 1796040900.0  # 2026-11-30 12:15
    moved = RunFacts(started=began, ended=began + 30, shift_s=544360.0)
    assert role("time", clock, moved) is Role.MEASUREMENT
    assert role("time", clock, RunFacts(started=began, ended=began + 30)) is not Role.MEASUREMENT


@pytest.mark.parametrize("counted", [False, True])
def test_what_differs_though_the_clock_counts_its_readings_was_not_measured_with_it(counted: bool) -> None:
    facts = RunFacts(started=FACTS.started, ended=FACTS.ended, counted=counted)
    as_ever = Role.OPEN if counted else Role.MEASUREMENT
    if counted:
        facts = replace(facts, shift_s=-28816100.5)
        assert role("age", "-28816119.07", facts) is role("age", "28816119", facts) is Role.MEASUREMENT
        assert role("age", "-28810000.07", facts) is Role.RESULT
        assert role("score", "-1.5", replace(facts, shift_s=2.0)) is Role.RESULT
    for name, value in (("fit_time", "0.25"), ("", "0.25 s"), ("images_per_sec", "812.5"), ("eta", "3 s")):
        assert role(name, value, facts) is as_ever, name
    assert array_role("fit_time", 0.25, 0.5, facts) is as_ever
    for name, value in (("peak_memory_mb", "812.5"), ("created", "2025-11-25 08:12:45"), ("elapsed", "0:00:02")):
        assert role(name, value, facts) is Role.MEASUREMENT, name


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("saved /home/ann/project/a.pt", "saved /home/ann/project/a.pt"),
        ("<f at 0x7f0123456789> 3", "<f at 0x7f9876543210> 3"),
        ("see /tmp/tmpab12cd_x/m", "see /tmp/tmpzz12cd_9/m"),
        ("run_20251125_081233", "run_20251125_081250"),
        ("train_e8b1a_00001", "train_07f9f_00001"),
        (
            "9f3e6d0a-2b45-4c17-8e21-0a9b8c7d6e5f-140477242227584 ",
            "0a9b8c7d-2b45-4c17-8e21-9f3e6d0a6e5f-140525951196032 ",
        ),
    ],
)
def test_texts_that_only_differ_in_identifiers_are_equal_when_masked(a: str, b: str) -> None:
    assert masked(a, FACTS) == masked(b, FACTS)
    assert masked(a + "1", FACTS) != masked(b + "2", FACTS)


def test_the_next_of_numbered_folders_is_the_first() -> None:
    facts = replace(FACTS, numbered=(("runs/train2", "runs/train"), ("runs/2", "runs/1")))
    for text, expected in (("runs/train2/a", "runs/train/a"), ("train2", "train"), ("2", "2"), ("train2b", "train2b")):
        assert masked(text, facts) == expected


def test_a_date_that_is_not_of_the_run_is_not_masked() -> None:
    for name in ("run_20201125_081233", "mlp_1126_101233", "201125-081233", "1125_0.081233", "acc_1125_981233"):
        assert masked(name, FACTS) == name


names = st.text("abcdefghijklmnopqrstuvwxyz_./ABC019 -", max_size=40) | st.sampled_from([name for name, _, _ in TABLE])
numbers = st.floats(allow_nan=True).map(repr) | st.integers().map(str)


@given(names, numbers | st.text(max_size=60) | st.sampled_from([value for _, value, _ in TABLE]))
def test_every_value_has_a_role(name: str, value: str) -> None:
    assert role(name, value, FACTS) in set(Role)


@given(st.sampled_from(cases(RESULTS)), st.floats(0, 50, exclude_min=True))
def test_a_name_of_a_result_is_one_whatever_the_number(case: tuple[str, str], value: float) -> None:
    name, shown = case
    if name and shown not in ("-1.0", "nan") and role(name, "1.5", FACTS) is Role.RESULT:
        assert role(name, f"{value:.6f}", FACTS) is Role.RESULT


@given(st.floats(53.0, 1e8), st.sampled_from(["elapsed_s", "time_s", "took_seconds", "fit_sec"]))
def test_no_duration_is_longer_than_the_run(value: float, name: str) -> None:
    assert role(name, f"{value + 3:.3f}", FACTS) is Role.RESULT


@given(st.floats(-10.0, 60.0), st.integers(-48, 56))
def test_the_time_of_the_run_in_any_zone(after: float, quarters: int) -> None:
    from datetime import datetime, timedelta, timezone

    zone = timezone(timedelta(minutes=15 * quarters))
    moment = datetime.fromtimestamp(FACTS.started + after, zone)
    for text in (moment.isoformat(), moment.strftime("%Y-%m-%d %H:%M:%S"), moment.strftime("%a %b %d %H:%M:%S %Y")):
        assert role("", text, FACTS) is Role.MEASUREMENT


def test_a_clock_may_count_from_the_start_of_the_machine() -> None:
    booted = msgspec.structs.replace(FACTS, since_boot=140000.0)
    assert role("", "140012.731", booted) is Role.OPEN
    assert role("", "139000.731", booted) is role("", "140012", booted) is Role.RESULT
    assert role("start_time", "140021.58", booted) is Role.MEASUREMENT
    assert role("start_time", "150021.58", booted) is Role.RESULT
    assert role("start_time", "140021.58", FACTS) is Role.RESULT
