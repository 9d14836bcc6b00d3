from tests.process.conftest import Project


def test_the_machine_and_its_packages_are_told(project: Project) -> None:
    done = project.detaudit("doctor", env={"OMP_NUM_THREADS": "2", "API_TOKEN": "a secret"})
    assert done.code == 0
    assert "OMP_NUM_THREADS" in done.out
    assert "torch" in done.out
    assert "secret" not in done.out
    told = project.detaudit("doctor", "--format", "json")
    assert told.json["bearing"]["cpus"] == str(told.json["environment"]["cpus"])


def test_what_is_no_python_is_said(project: Project) -> None:
    done = project.detaudit("doctor", "--python", "/bin/false")
    assert (done.code, done.out) == (2, "")
    assert "/bin/false is no Python that runs" in done.err
