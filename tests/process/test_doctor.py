from tests.process.conftest import Project


def test_the_machine_and_its_packages_are_reported(project: Project) -> None:
    done = project.detaudit("doctor", env={"OMP_NUM_THREADS": "2", "API_TOKEN": "a secret"})
    assert done.code == 0
    assert "OMP_NUM_THREADS" in done.out
    assert "numpy" in done.out
    assert "secret" not in done.out
    found = project.detaudit("doctor", "--format", "json").json
    assert found["relevant"]["cpus"] == str(found["environment"]["cpus"])


def test_recipes_and_flags_are_listed_and_explained(project: Project) -> None:
    listed = project.detaudit("recipes")
    assert (listed.code, "torch-seed" in listed.out, "seeds" in listed.out) == (0, True, True)
    assert "torch.manual_seed" in project.detaudit("recipes", "show", "torch-seed").out


def test_what_is_not_a_python_is_reported(project: Project) -> None:
    done = project.detaudit("doctor", "--python", "/bin/false")
    assert (done.code, done.out) == (2, "")
    assert "/bin/false is not a working Python interpreter" in done.err
