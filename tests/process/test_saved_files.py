"""Files that a script writes decide, without an option, value by value, wherever it wrote them."""

import json
import subprocess
from typing import Any

import pytest

from tests.process.conftest import Project
from tests.words import same

SAVING = """
    import json, os, random, struct, time
    import training

    def save(path, **tensors):
        data = {name: struct.pack(f"<{len(values)}f", *values) for name, values in tensors.items()}
        header, at = {"__metadata__": {"saved_at": str(time.time())}}, 0
        for name, values in tensors.items():
            header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [at, at + len(data[name])]}
            at += len(data[name])
        text = json.dumps(header).encode()
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + b"".join(data.values()))

    w = training.train(seed=0)
    chance = int.from_bytes(os.urandom(4), "little") / 2**32
"""


def audit(project: Project, script: str, *words: str, **options: Any) -> tuple[int, dict[str, Any]]:
    (project.folder / "train.py").write_text(project.write("head.py", SAVING).read_text() + script)
    done = project.run("train.py", "--runs", "2", *words, **options)
    assert done.out, done.err
    return done.code, done.json["groups"][0]


DIFFERENT = {
    "weights that are only saved": (
        "save('ema.safetensors', w=w, ema=[chance * x for x in w])", "ema.safetensors", "ema"
    ),
    "the best of two, chosen by chance": (
        "save('best.safetensors', c=[chance], w=w if chance < 0.5 else [2 * x for x in w])", "best.safetensors", "c"
    ),
    "in a folder with the time": (
        "save(f'runs/{time.time_ns()}-{os.getpid()}/a.safetensors', c=[chance])", "/a.safetensors", "c"
    ),
    "with a random name": ("save(f'{os.urandom(8).hex()}.safetensors', c=[chance])", ".safetensors", "c"),
    "a file that only the first run writes": (
        "if not os.path.exists('first.safetensors'): save('first.safetensors', w=w)", "first.safetensors", ""
    ),
    "bytes of no known format": ("open('t.bin', 'wb').write(b'\\x08' + os.urandom(9))", "t.bin", ""),
    "a column of a table": ("open('log.csv', 'w').write(f'step,score\\n1,{chance}\\n')", "log.csv", "row 1, score"),
}  # fmt: skip

EQUAL = {
    "a time inside": "save('m.safetensors', w=w)",
    "in a folder with the time": "save(f'runs/{time.time_ns()}-{os.getpid()}/a.safetensors', w=w)",
    "with a random name, in a random order": """
for values in ([w, w[:3]] if chance < 0.5 else [w[:3], w]):
    save(f'{os.urandom(8).hex()}.safetensors', w=values)
""",
    "numbered by what is there": """
number = len(os.listdir('versions')) if os.path.exists('versions') else 0
save(f'versions/version_{number}/last.safetensors', w=w)
""",
    "a cache that later runs read": """
if os.path.exists('cache.safetensors'):
    open('cache.safetensors', 'rb').read()
else:
    save('cache.safetensors', w=w)
""",
    "in a folder of caches": "os.makedirs('c', exist_ok=True); "
    "open('c/CACHEDIR.TAG', 'w').write('Signature: 8a477f597d28d172789f06886806bc55'); "
    "save('c/a.safetensors', c=[chance])",
    "a clock in a table and in a line": """
open('log.csv', 'w').write(f'step,epoch_time\\n1,{time.process_time()}\\n')
print(f'epoch_time={time.process_time()}')
""",
}


def first_saved(group: dict[str, Any]) -> tuple[str, str]:
    """Return which file decided, and the path inside."""
    found = group["first_difference"]
    assert (found["stage"], found["step"]) == ("saved", 0)
    assert found["site"] == found["output"]["path"]
    return found["site"], found["output"]["at"]


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_was_saved_decides(project: Project, case: str) -> None:
    script, file, at = DIFFERENT[case]
    code, group = audit(project, script)
    assert code == 1
    site, inside = first_saved(group)
    assert site.endswith(file)
    assert inside == at
    assert group["first_difference"]["explanation"]["likely"] == ["beside-the-training"]


@pytest.mark.parametrize("case", EQUAL)
def test_what_is_no_difference_of_the_training(project: Project, case: str) -> None:
    code, group = audit(project, EQUAL[case])
    assert (code, group["verdict"]) == (0, "deterministic")


def test_a_file_that_cannot_be_read_settles_nothing(project: Project) -> None:
    script = "save('t.safetensors', c=[chance] * 9); os.truncate('t.safetensors', 90)"
    code, group = audit(project, script)
    assert (code, group["verdict"], group["first_difference"]) == (125, "inconclusive", None)
    difference = group["output_differences"][0]
    assert (difference["path"], difference["kind"]) == ("t.safetensors", "unreadable")
    assert difference["problem"]
    assert audit(project, script, "--ignore", "*.safetensors")[0] == 0
    code, group = audit(project, script, "--artifact", "t.safetensors")
    assert (code, group["first_difference"]["stage"]) == (1, "artifact")


LOGGED = "open('log.csv', 'w').write(f'chance {chance}'); print('chance', chance)"


def test_files_without_tensors_and_printed_text_decide(project: Project) -> None:
    code, group = audit(project, LOGGED)
    assert code == 1
    assert first_saved(group) == ("log.csv", "line 1, chance")
    found = [(one["path"], one["kind"], one["at"], one["runs"]) for one in group["output_differences"]]
    assert found == [("log.csv", "value", "line 1, chance", [1, 2]), ("stdout", "value", "line 1, chance", [1, 2])]
    assert all(one["values"][0] != one["values"][1] for one in group["output_differences"])
    code, group = audit(project, LOGGED, "--ignore", "log.csv")
    assert (code, group["first_difference"]["stage"]) == (1, "printed")
    assert audit(project, LOGGED, "--ignore", "log.csv", "--ignore-text", "chance .*")[0] == 0
    code, group = audit(project, LOGGED, "--artifact", "log.csv")
    assert (code, group["first_difference"]["stage"]) == (1, "artifact")
    code, group = audit(project, LOGGED, "--measured", "Chance")
    assert (code, {one["kind"] for one in group["output_differences"]}) == (0, {"measurement"})
    assert not group["warnings"]
    code, group = audit(project, LOGGED, "--measured", "chance", "--result", "chanse", "--result", "*hanc?")
    assert (code, [(one["kind"], one["names"]) for one in group["warnings"]]) == (1, [("names-unused", ["chanse"])])


def test_the_training_alone(project: Project) -> None:
    code, group = audit(project, LOGGED, "--compare", "training")
    assert (code, group["verdict"]) == (0, "deterministic")
    assert {(one["path"], one["kind"]) for one in group["output_differences"]} == {
        ("log.csv", "undecided"),
        ("stdout", "undecided"),
    }
    assert audit(project, "save('m.safetensors', c=[chance])", "--compare", "training")[0] == 1


def test_without_files(project: Project) -> None:
    code, group = audit(project, "save('m.safetensors', c=[chance])", "--no-files")
    assert (code, group["output_differences"]) == (0, [])
    text = project.detaudit("run", "train.py", "--runs", "2", "--no-files").out
    assert "detaudit run train.py --runs 2 --no-files" in text


@pytest.mark.slow
def test_equal_files_prove_nothing_but_those_that_are_named(project: Project) -> None:
    same = audit(project, "", "--no-files")[1]
    assert same["verdict"] == "deterministic"
    bare = SAVING.replace("w = training.train(seed=0)", "w = [1.0, 2.0]").replace("import training", "")
    head = project.write("head.py", bare).read_text()
    (project.folder / "fit.py").write_text(head + "save('m.safetensors', w=w)")
    assert project.run("fit.py", "--runs", "2").code == 125
    assert project.run("fit.py", "--runs", "2", "--no-files").code == 125
    (project.folder / "fit.py").write_text(head + "open('m.txt', 'w').write('2.5\\n')")
    assert project.run("fit.py", "--runs", "2").code == 125
    assert project.run("fit.py", "--runs", "2", "--artifact", "m.txt").code == 0
    (project.folder / "fit.py").write_text(head + "save('m.safetensors', w=[chance])")
    done = project.run("fit.py", "--runs", "2")
    assert done.code == 1
    assert first_saved(done.json["groups"][0]) == ("m.safetensors", "w")


def test_a_file_outside_of_the_working_directory(project: Project) -> None:
    outside, temporary = project.folder.parent / "outside", project.folder.parent / "tmp"
    outside.mkdir()
    temporary.mkdir()
    script = f"save({str(outside / 'm.safetensors')!r}, c=[chance])"
    code, group = audit(project, script, env={"TMPDIR": str(temporary)})
    assert (code, *first_saved(group)) == (1, f"{outside}/m.safetensors", "c")


def test_a_temporary_file_is_named_and_not_compared(project: Project) -> None:
    temporary = project.folder.parent / "tmp"
    temporary.mkdir()
    file = temporary / "m.safetensors"
    script = f"save({str(file)!r}, c=[chance])\nsave({str(temporary)!r} + f'/tmp{{chance}}', c=[chance])"
    code, group = audit(project, script, env={"TMPDIR": str(temporary)})
    assert code == 0
    (warning,) = group["warnings"]
    assert (warning["kind"], warning["files"]) == ("temporary-files-skipped", [str(file)])
    code, group = audit(project, script, "--artifact", str(file), env={"TMPDIR": str(temporary)})
    assert (code, group["warnings"]) == (1, [])


def test_an_isolated_run(project: Project) -> None:
    assert audit(project, "save('out/m.safetensors', w=w)", "--isolate")[0] == 0
    code, group = audit(project, "save('out/m.safetensors', c=[chance])", "--isolate")
    assert (code, *first_saved(group)) == (1, "out/m.safetensors", "c")


@pytest.mark.full
def test_a_baseline_with_dated_files(project: Project) -> None:
    script = "save(f'runs/{time.time_ns()}/m.safetensors', w=[SCALE * x for x in w])"
    head = project.write("head.py", SAVING).read_text()
    project.write("detaudit.yaml", "audits: {small: {command: train.py, runs: 2}}")
    (project.folder / "train.py").write_text(head + script.replace("SCALE", "1"))
    assert project.detaudit("check", "--update").code == 0
    assert project.detaudit("check").code == 0
    (project.folder / "train.py").write_text(head + script.replace("SCALE", "2"))
    done = project.detaudit("check", "--format", "json")
    assert done.code == 1
    (project.folder / "train.py").write_text(head)
    done = project.detaudit("check")
    assert done.code == 1
    assert "m.safetensors" in done.out


WAYS = {
    "below the home folder": "save(HOME + '/.cache/mine/m.safetensors', c=[chance])",
    "written, then replaced": "save('m.tmp', c=[chance]); os.replace('m.tmp', HOME + '/m.safetensors')",
    "moved": "import shutil; save('m.tmp', c=[chance]); shutil.move('m.tmp', HOME + '/m.safetensors')",
    "a folder that is renamed": (
        "save('ckpt.tmp/m.safetensors', c=[chance]); os.rename('ckpt.tmp', HOME + f'/{os.getpid()}')"
    ),
    "a hard link": (
        "save('m.tmp', c=[chance]); os.link('m.tmp', HOME + f'/{os.getpid()}.safetensors'); os.remove('m.tmp')"
    ),
    "through a link of the working directory": (
        "os.path.exists('out') or os.symlink(HOME, 'out'); save('out/m.safetensors', c=[chance])"
    ),
    "by another program in a folder that the script made": (
        "os.mkdir(f'{HOME}/{os.getpid()}'); save('m.tmp', c=[chance]); "
        "import subprocess; subprocess.run(['cp', 'm.tmp', f'{HOME}/{os.getpid()}/m.safetensors']); os.remove('m.tmp')"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_decides_however_it_got_its_name(project: Project, way: str) -> None:
    env = {"HOME": str(project.folder.parent / "home"), "TMPDIR": str(project.folder.parent / "temporary")}
    for folder in env.values():
        (project.folder.parent / folder).mkdir()
    script = f"HOME = {env['HOME']!r}\n" + WAYS[way]
    code, group = audit(project, script, env=env)
    assert (code, group["first_difference"]["stage"]) == (1, "saved")
    assert "safetensors" in group["first_difference"]["site"]


def test_names_that_are_gone_do_not_count(project: Project) -> None:
    env = {"HOME": str(project.folder.parent / "home"), "TMPDIR": str(project.folder.parent / "temporary")}
    for folder in env.values():
        (project.folder.parent / folder).mkdir()
    script = f"""
HOME = {env["HOME"]!r}
save(f"{{HOME}}/{{chance}}.tmp", c=[chance])
os.remove(f"{{HOME}}/{{chance}}.tmp")
save(f"{{HOME}}/m.tmp", w=w)
os.replace(f"{{HOME}}/m.tmp", f"{{HOME}}/m.safetensors")
open(HOME + "/log.txt", "a").write("one more run\\n")
"""
    code, group = audit(project, script, env=env)
    assert (code, group["verdict"]) == (0, "deterministic")


MANY = """
(recorded,) = [module for name, module in sys.modules.items() if name.endswith(".recorder.process.children")]
recorded._MOST = 10
os.makedirs(FOLDER, exist_ok=True)
first = not os.path.exists(FOLDER + "/13.txt")
for number in range(30):
    with open(f"{FOLDER}/{number}.txt", "w") as file:
        file.write(f"score {0.5 + (number == 13 and not first and CHANGES):.6f}\\n")
"""


@pytest.mark.parametrize("where", ["below", "elsewhere, made by the run", "elsewhere"])
@pytest.mark.parametrize("changes", [False, True])
def test_more_files_than_are_recorded_decide_where_they_are_searched(
    project: Project, where: str, changes: bool
) -> None:
    home = project.folder.parent / "home"
    folder = project.folder / "features" if where == "below" else home / ".cache" / "features"
    (home if where != "elsewhere" else folder).mkdir(parents=True)
    (project.folder.parent / "temporary").mkdir()
    env = {"HOME": str(home), "TMPDIR": str(project.folder.parent / "temporary")}
    code, group = audit(project, f"import sys\nFOLDER, CHANGES = {str(folder)!r}, {changes}\n{MANY}", env=env)
    if where == "elsewhere":
        assert (code, group["verdict"]) == (125, "inconclusive")
    elif changes:
        assert (code, group["verdict"]) == (1, "nondeterministic")
        assert "features/13.txt" in group["first_difference"]["site"]
    else:
        assert (code, group["verdict"]) == (0, "deterministic")


@pytest.mark.parametrize("to", ["> log.txt 2>&1", "2>&1 | tee log.txt"])
def test_what_detaudit_prints_itself_is_no_file_of_a_run(project: Project, seeded: str, to: str) -> None:
    words = " ".join(project.command("run", seeded, "--runs", "3", "--verbose", "--out", "results"))
    subprocess.run(["bash", "-c", f"{words} {to}"], cwd=project.folder, check=True, stdout=subprocess.DEVNULL)
    text = (project.folder / "log.txt").read_text()
    assert "run 2" in text.partition(f"deterministic: {same(3)}")[0]
    audit = json.loads((project.folder / "results" / "audit.json").read_text())
    assert audit["verdict"] == "deterministic"
    assert not [one for run in audit["groups"][0]["runs"] for one in run["saved"]]


def test_a_file_that_the_shell_has_open_is_one_of_a_run(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os
        import training
        training.train(seed=0)
        os.system("echo accuracy=0.$$ > results.txt")
        """,
    )
    words = " ".join(project.command("run", "train.py", "--runs", "2", "--out", "results"))
    subprocess.run(["bash", "-c", f"exec 3>>results.txt; {words} 2>&1 | cat"], cwd=project.folder, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    assert json.loads((project.folder / "results" / "audit.json").read_text())["verdict"] == "nondeterministic"
