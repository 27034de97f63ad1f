"""How save changes a file, whatever its format: it is the old one or the new one, at every call of the system at which the
process may be killed or refused something."""

import errno
import json
import os
import pathlib
import stat
import subprocess
import sys

import pytest

import tenon

HERE = pathlib.Path(__file__).parent
OLD, NEW = {"w": tenon.arange(6.0).reshape(2, 3)}, {f"w{i}": tenon.full((200, 3), float(i)) for i in range(100)}
FORMATS = ["checkpoint", "weights.safetensors"]


def holds(path, value):
    found = tenon.load(path)
    return found.keys() == value.keys() and all(tenon.equal(found[name], value[name]) for name in value)


@pytest.fixture(params=FORMATS)
def path(tmp_path, request):
    path = tmp_path / request.param
    tenon.save(OLD, path)
    return path


@pytest.fixture(scope="session")
def interposed(tmp_path_factory):
    library = tmp_path_factory.mktemp("interposed") / "calls.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", HERE / "interposed_calls.c", "-o", library, "-ldl"], check=True)
    return library


# Forks one child for each call of the system that a save makes, until one save ends before the call that was planned. A
# child is killed, or the call fails with an error; what is in the folder afterwards is counted.
SAVED_OVER = """
import ctypes, json, os, sys
import tenon

folder, name, error, nameless = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "nameless"
calls = ctypes.CDLL(os.environ["LD_PRELOAD"])
calls.refuse_nameless_files(not nameless)
path = os.path.join(folder, name)
old = {"w": tenon.arange(6.0).reshape(2, 3)}
new = {f"w{i}": tenon.full((200, 3), float(i)) for i in range(100)}

def is_whole(value):
    found = tenon.load(path)
    return found.keys() == value.keys() and all(tenon.equal(found[name], value[name]) for name in value)

counts = {"old": 0, "new": 0, "lost": 0, "left": 0, "unexpected": 0}
for n in range(1000):
    tenon.save(old, path)
    child = os.fork()
    if child == 0:
        calls.plan_end(folder.encode(), n, error)
        try:
            tenon.save(new, path)
        except OSError as e:
            os._exit(2 if e.errno == error else 3)
        os._exit(0 if calls.calls_so_far() <= n else 4)
    status = os.waitpid(child, 0)[1]
    if status == 0:
        break
    ended = os.WIFSIGNALED(status) if error == 0 else os.WEXITSTATUS(status) in (2, 4)
    counts["unexpected"] += not ended
    counts["old" if is_whole(old) else "new" if is_whole(new) else "lost"] += 1
    for other in os.listdir(folder):
        if other != name:
            counts["left"] += 1
            os.unlink(os.path.join(folder, other))
print(json.dumps(counts))
"""


def save_over(interposed, path, error, nameless):
    command = [sys.executable, "-c", SAVED_OVER, path.parent, path.name, str(error), "nameless" if nameless else "named"]
    run = subprocess.run(command, env={**os.environ, "LD_PRELOAD": str(interposed)}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("nameless", [True, False])
def test_a_process_that_is_killed_leaves_a_whole_file(interposed, path, nameless):
    """At every call that changes the folder: more than a hundred for safetensors, which has 100 tensors to write."""
    counts = save_over(interposed, path, 0, nameless)
    assert counts["lost"] == counts["unexpected"] == 0 and counts["old"] >= 5 and counts["new"] >= 1, counts
    if path.suffix:
        assert counts["old"] > 100, counts
    # Only between the calls that name it and that put it in its place is a nameless file seen.
    assert counts["left"] == 1 if nameless else counts["left"] > 0, counts


@pytest.mark.parametrize("nameless", [True, False])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(interposed, path, nameless):
    counts = save_over(interposed, path, errno.ENOSPC, nameless)
    assert counts["lost"] == counts["left"] == counts["unexpected"] == 0 and counts["old"] >= 4, counts
    # A file with a name serves instead of a nameless one; and a folder that cannot be synchronised is no error.
    assert counts["new"] <= 2, counts


FULL = """
import resource, signal, sys
import tenon
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    tenon.save({"w": tenon.zeros(200, 300)}, sys.argv[1])
except OSError as error:
    print(error.strerror)
"""


def test_the_error_of_the_system_is_raised(path):
    run = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, text=True)
    assert run.stdout == "File too large\n" and run.stderr == ""
    assert holds(path, OLD) and os.listdir(path.parent) == [path.name]


PERMISSIONS = """
import ctypes, os, sys
import tenon
ctypes.CDLL(os.environ["LD_PRELOAD"]).plan_end(os.path.dirname(sys.argv[1]).encode(), -1, 0)
ctypes.CDLL(os.environ["LD_PRELOAD"]).refuse_nameless_files(sys.argv[2] != "nameless")
tenon.save({"w": tenon.ones(2)}, sys.argv[1])
os.umask(0o027)
folder, name = os.path.split(sys.argv[1])
tenon.save({"w": tenon.ones(2)}, os.path.join(folder, "new-" + name))
"""


@pytest.mark.parametrize("nameless", ["nameless", "named"])
def test_a_file_keeps_its_permissions_and_a_new_one_gets_the_usual_ones(interposed, path, nameless):
    os.chmod(path, 0o604)
    environment = {**os.environ, "LD_PRELOAD": str(interposed)}
    subprocess.run([sys.executable, "-c", PERMISSIONS, path, nameless], env=environment, check=True)
    new = path.with_name(f"new-{path.name}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604 and holds(path, {"w": tenon.ones(2)})
    assert stat.S_IMODE(new.stat().st_mode) == 0o640 and holds(new, {"w": tenon.ones(2)})


def test_a_symbolic_link_stays_one(path):
    link, dangling = path.with_name(f"link-{path.name}"), path.with_name(f"dangling-{path.name}")
    link.symlink_to(path.name)
    tenon.save(NEW, link)
    assert link.is_symlink() and holds(path, NEW)
    later = path.with_name(f"later-{path.name}")
    dangling.symlink_to(later.name)
    tenon.save(OLD, dangling)
    assert dangling.is_symlink() and holds(later, OLD)
    loop = path.with_name(f"loop-{path.name}")
    loop.symlink_to(loop.name)
    with pytest.raises(OSError, match="symbolic links"):
        tenon.save(OLD, loop)


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_ordinary_file_is_written_and_read_in_place(tmp_path, name):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    program = "import sys, tenon; assert tenon.load(sys.argv[1])['w'].tolist() == [[0, 1, 2], [3, 4, 5]]"
    reader = subprocess.Popen([sys.executable, "-c", program, pipe])
    tenon.save(OLD, pipe)
    assert reader.wait() == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    pipe.unlink()
    pipe.mkdir()
    with pytest.raises(IsADirectoryError):
        tenon.save(OLD, pipe)


@pytest.mark.parametrize("make", [str, os.fsencode])
@pytest.mark.parametrize("name", FORMATS)
def test_errors_name_the_path_that_was_given(tmp_path, make, name):
    path = tmp_path / "missing" / name
    with pytest.raises(FileNotFoundError, match=f"missing/{name}'$"):
        tenon.save(OLD, make(path))
    with pytest.raises(FileNotFoundError, match=f"missing/{name}'$"):
        tenon.load(make(path))


def save_as_nobody(path):
    """The error of a save by a user who may not do everything, as root may."""
    program = (
        "import os, sys, tenon\n"
        "tenon.zeros(1)\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: tenon.save({'w': tenon.zeros(2)}, sys.argv[1])\n"
        "except OSError as error: print(type(error).__name__, error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert run.stderr == ""
    return run.stdout


@pytest.fixture
def open_folder(path):
    """The path, every folder above which others may pass through."""
    for folder in path.parents:
        if folder.stat().st_uid != os.getuid() or not str(folder).startswith("/tmp/"):
            break
        folder.chmod(folder.stat().st_mode | 0o055)
    return path


def test_what_may_not_be_written_stays(open_folder):
    open_folder.parent.chmod(0o777)
    open_folder.chmod(0o444)
    assert save_as_nobody(open_folder).startswith("PermissionError [Errno 13] Permission denied")
    assert holds(open_folder, OLD) and os.listdir(open_folder.parent) == [open_folder.name]


def test_a_folder_that_nothing_can_be_added_to_is_an_error(open_folder):
    open_folder.chmod(0o666)
    open_folder.parent.chmod(0o555)
    try:
        printed = save_as_nobody(open_folder)
    finally:
        open_folder.parent.chmod(0o755)
    assert "Permission denied (no file can be added to its folder)" in printed
    assert holds(open_folder, OLD)


RACE = """
import sys, tenon
value, path = float(sys.argv[1]), sys.argv[2]
sys.stdin.readline()
for _ in range(40):
    tenon.save({"w": tenon.full((300, 300), value)}, path)
"""


def test_of_two_writers_one_wins_whole(path):
    command = [sys.executable, "-c", RACE]
    writers = [subprocess.Popen([*command, str(i), path], stdin=subprocess.PIPE, text=True) for i in (1, 2)]
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    seen = 0
    while any(writer.poll() is None for writer in writers):
        value = tenon.load(path)["w"]
        assert value.shape == (2, 3) or (value == value[0, 0]).all() and value.numel() == 90_000
        seen += 1
    assert all(writer.wait() == 0 for writer in writers) and seen > 1
    assert os.listdir(path.parent) == [path.name]
