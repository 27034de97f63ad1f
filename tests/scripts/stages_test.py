"""scripts/stages.sh, whose stages ./test and .ci/run run: every stage has its seconds, and a failure hides nothing."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAGES = (ROOT / "scripts" / "stages.sh").read_text()


def bash(script):
    """Runs `script` with the stages sourced, from the root: (exit status, output)."""
    prelude = "set -euo pipefail; say() { echo \"== $*\"; }; . scripts/stages.sh\n"
    done = subprocess.run(["bash", "-c", prelude + script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def test_the_table_has_every_stage():
    defined = set(re.findall(r"^stage_(\w+)\(\)", STAGES, re.M))
    table = re.findall(r"^\| `(\w+)` \| (\d+) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    assert {name for name, _ in table} == defined and len(table) == len(defined)
    assert all(int(seconds) > 0 for _, seconds in table)


def test_core_and_deep_stages_exist():
    code, output = bash('for name in "${CORE_STAGES[@]}" "${DEEP_STAGES[@]}"; do declare -F "stage_$name"; done')
    assert code == 0, output


def test_a_stage_that_fails_does_not_hide_the_later_ones():
    code, output = bash("""
        stage_cpp() { echo first; false; echo unreachable; }
        stage_python() { echo second; }
        stage_fuzz() { undefined_command; }
        stage cpp; stage python; stage fuzz; not_run thread "no time"; report_stages
    """)
    assert code == 1 and "first" in output and "second" in output and "unreachable" not in output
    lines = output.splitlines()
    assert lines[-1] == "FAILED: cpp fuzz"
    ends = [line for line in lines if re.match(r"(cpp|python|fuzz|thread) ", line)]
    assert [re.sub(r" +\S+ s of +\d+", "", line) for line in ends] == [
        "cpp  FAILED with exit status 1", "python  passed", "fuzz  FAILED with exit status 127", "thread  not run: no time",
    ]  # fmt: skip


def test_a_stage_that_takes_too_long_is_stopped_with_what_it_started(tmp_path):
    code, output = bash(f"""
        stage_cpp() {{ sleep 1000 & echo $! > {tmp_path}/pid; wait; }}
        stage_python() {{ echo second; }}
        stage_fuzz() {{ false; }}
        stage cpp 2; stage python 100; stage fuzz 100; report_stages
    """)
    lines = output.splitlines()
    assert code == 1 and "second" in output and lines[-1] == "FAILED: fuzz"
    ends = [re.sub(r" +\S+ s of +\d+", "", line) for line in lines if re.match(r"(cpp|python|fuzz) ", line)]
    assert ends == ["cpp  stopped, not finished", "python  passed", "fuzz  FAILED with exit status 1"]
    sleeping = pathlib.Path("/proc") / (tmp_path / "pid").read_text().strip() / "cmdline"
    assert not sleeping.exists() or b"sleep" not in sleeping.read_bytes()


def test_stages_that_pass_make_a_run_that_passes():
    code, output = bash("stage_cpp() { true; }\nstage cpp\nreport_stages")
    assert code == 0 and "FAILED" not in output


def test_a_stage_without_seconds_is_an_error():
    code, output = bash("stage_unknown() { true; }\nstage unknown")
    assert code != 0 and "The table in CONTRIBUTING.md has no stage 'unknown'" in output


def test_busy_runs_a_command_and_ends_its_loops(tmp_path):
    pids = tmp_path / "pids"
    script = f'pgrep -P $PPID > {pids}; [ $(wc -l < {pids}) -ge 7 ] && exit 3'
    done = subprocess.run([ROOT / "scripts" / "busy.sh", "sh", "-c", script], capture_output=True, text=True)
    assert done.returncode == 3 and "run 1 of 1 failed" in done.stderr
    left = [pid for pid in pids.read_text().split() if pathlib.Path(f"/proc/{pid}/cmdline").exists()
            and b"busy.sh" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]  # fmt: skip
    assert not left


def test_usage_errors():
    for arguments in (["--unknown"], ["a", "b"], ["--fast", "x"]):
        done = subprocess.run([ROOT / "test", *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith("usage: ./test [--fast | --deep | NAME]; got "), arguments
