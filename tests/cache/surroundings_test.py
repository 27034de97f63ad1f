"""Where plans go, and that programs run as without a cache where they cannot go there."""

import os
import subprocess
import sys

import pytest

import tenon

PROGRAM = """
import tenon
f = tenon.compile(lambda x: (x * 2.0 + 1.0).relu(), threshold=0)
assert f(tenon.ones(3)).tolist() == [3.0] * 3
assert f(tenon.ones(4)).tolist() == [3.0] * 4
tenon.plans.write()
print(tenon.plans.summary())
"""
NOT_FOUND = "not found: nothing was stored (2)"


def run(program=PROGRAM, prefix=(), **variables):
    environment = {name: value for name, value in os.environ.items() if name not in ("TENON_CACHE", "XDG_CACHE_HOME", "HOME")}
    done = subprocess.run([*prefix, sys.executable, "-c", program], env={**environment, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def plans_in(folder):
    return sorted(f for f in folder.iterdir() if f.suffix == ".plan")


@pytest.mark.parametrize("variables, folder", [
    ({"HOME": "{}"}, ".cache/tenon"),
    ({"HOME": "{}", "XDG_CACHE_HOME": "{}/caches"}, "caches/tenon"),
    ({"HOME": "{}", "XDG_CACHE_HOME": "relative"}, ".cache/tenon"),
    ({"HOME": "{}", "TENON_CACHE": "{}/mine"}, "mine"),
])  # fmt: skip
def test_the_folder_follows_from_the_environment(variables, folder, tmp_path):
    variables = {name: value.format(tmp_path) for name, value in variables.items()}
    assert run(**variables)[0] == f"2 planned, 0 tuned, 0 loaded; {NOT_FOUND}"
    assert len(plans_in(tmp_path / folder)) == 2
    assert run(**variables) == ("0 planned, 0 tuned, 2 loaded", "")


def test_a_relative_folder_stays_where_it_is(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    program = f"import os, tenon\nos.chdir({str(tmp_path)!r})\ntenon.plans.summary()\nos.chdir('elsewhere')\n{PROGRAM}"
    assert run(program, TENON_CACHE="mine")[0] == f"2 planned, 0 tuned, 0 loaded; {NOT_FOUND}"
    assert len(plans_in(tmp_path / "mine")) == 2 and not list((tmp_path / "elsewhere").iterdir())


def test_without_a_folder_programs_run_as_always(tmp_path):
    assert run() == ("2 planned, 0 tuned, 0 loaded; no cache: there is no HOME", "")
    for off in ("", "0"):
        said = run(TENON_CACHE=off, HOME=str(tmp_path))
        assert said == ("2 planned, 0 tuned, 0 loaded; no cache: TENON_CACHE switches it off", "")
    assert not list(tmp_path.iterdir())


def test_stages_of_planning_are_shown_of_plans_that_are_there_already(tmp_path):
    for _ in range(2):
        run(TENON_CACHE=str(tmp_path / "plans"))
    (tmp_path / "stages").mkdir()
    out, _ = run(TENON_CACHE=str(tmp_path / "plans"), TENON_DUMP_GRAPH=str(tmp_path / "stages"))
    assert out.startswith("2 planned, 0 tuned, 0 loaded; no cache: TENON_DUMP_GRAPH") and list((tmp_path / "stages").glob("*fused.txt"))


def test_a_folder_that_others_may_write_is_refused_once(tmp_path):
    tmp_path.chmod(0o777)
    out, said = run(TENON_CACHE=str(tmp_path))
    why = f"others may write into {tmp_path}, and so change what this program computes; `chmod go-w` keeps them out"
    assert said == f"plans are not kept on disk: {why}\n"
    assert out.startswith(f"2 planned, 0 tuned, 0 loaded; not found: {why} (2); not written: ") and out.endswith(f"{why} (1)")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    out, said = run(TENON_CACHE=str(tmp_path / "file" / "plans"))
    assert "Not a directory" in said and said.count("\n") == 1
    assert out.startswith("2 planned, 0 tuned, 0 loaded; not found: ")


def test_a_home_that_is_none_is_not_made(tmp_path):
    """Nor is it asked for as a place of plans: no word, but the reason."""
    (tmp_path / "file").write_text("")
    for name in ("file", "absent"):
        home = tmp_path / name
        assert run(HOME=str(home)) == (f"2 planned, 0 tuned, 0 loaded; no cache: HOME is '{home}', which is no folder", "")
    caches = tmp_path / "absent/caches"
    out, said = run(HOME=str(tmp_path), XDG_CACHE_HOME=str(caches))
    assert said == "" and out.endswith(f"no cache: XDG_CACHE_HOME is '{caches}', in a folder that is not there")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("folder", ["/", "//", "/./", "{}/root"])
def test_the_root_is_no_folder_of_plans(folder, tmp_path):
    (tmp_path / "root").symlink_to("/")
    folder, before = folder.format(tmp_path), os.listdir("/")
    why = f"TENON_CACHE is '{folder}', the root of all folders; name a folder for plans alone"
    assert run(TENON_CACHE=folder) == (f"2 planned, 0 tuned, 0 loaded; no cache: {why}", f"plans are not kept on disk: {why}\n")
    assert os.listdir("/") == before


def test_a_tilde_is_not_taken_literally(tmp_path):
    program = f"import os\nos.chdir({str(tmp_path)!r})\n{PROGRAM}"
    out, said = run(program, TENON_CACHE="~/plans")
    assert said == "plans are not kept on disk: TENON_CACHE is '~/plans', and Tenon does not expand ~; write the home folder out\n"
    assert "no cache" in out and not list(tmp_path.iterdir())


def test_a_limit_on_the_size_of_files(tmp_path):
    out, said = run(prefix=["sh", "-c", 'ulimit -f 0 && exec "$@"', "sh"], TENON_CACHE=str(tmp_path))
    assert said == "" and out.endswith("not written: File too large (1), another plan could not be written (1)")
    assert not plans_in(tmp_path)


def test_another_instruction_set_has_plans_of_its_own(tmp_path):
    if tenon.cpu_target_name() == "SSE4":
        pytest.skip("this machine or this build has no other than SSE4")
    for _ in range(2):
        run(TENON_CACHE=str(tmp_path))
    assert run(TENON_CACHE=str(tmp_path), TENON_CPU_TARGET="SSE4")[0] == f"2 planned, 0 tuned, 0 loaded; {NOT_FOUND}"
    ours, theirs = {}, {}
    assert len(plans_in(tmp_path)) == 4
    # Under each other's names they are refused, by that reason.
    files = plans_in(tmp_path)
    for file in files:
        (theirs if b"SSE4" in file.read_bytes()[:200] else ours)[file] = file.read_bytes()
    for file, data in zip(ours, theirs.values()):
        file.write_bytes(data)
    out, _ = run(TENON_CACHE=str(tmp_path))
    assert out == "2 planned, 0 tuned, 0 loaded; not found: the file is for another instruction set (2)"


def test_forked_children_keep_what_they_plan(tmp_path):
    out, _ = run("""
import os, tenon
tenon.compile(lambda x: x * 2.0 + 1.0, threshold=0)(tenon.ones(3))
child = os.fork()
if child == 0:
    tenon.compile(lambda x: (x - 1.0).exp(), threshold=0)(tenon.ones(3))
    print(tenon.plans.summary(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(tenon.plans.summary())
""", TENON_CACHE=str(tmp_path))  # fmt: skip
    one = "1 planned, 0 tuned, 0 loaded; not found: nothing was stored (1)"
    assert out.splitlines() == [one, one]
    assert len(plans_in(tmp_path)) == 2


def test_a_size_that_is_none_is_said_so(tmp_path):
    assert run(TENON_CACHE=str(tmp_path), TENON_CACHE_MB="much")[1] == "TENON_CACHE_MB: 'much' is no number of megabytes; 64 is taken\n"
    # Nothing fits in nothing.
    run(TENON_CACHE=str(tmp_path / "small"), TENON_CACHE_MB="0")
    assert not plans_in(tmp_path / "small")
