"""save and load: damage is noticed. How files are replaced: replaced_files_test.py. Hostile files: hostile_files_test.py."""

import collections
import io
import os
import random
import sys
from pathlib import Path

import pytest

import tenon

IO = Path(__file__).parents[2] / "io"
sys.path.insert(0, str(IO))
from own_values import every_kind, same  # noqa: E402

OLD, NEW = {"w": tenon.arange(6.0).reshape(2, 3)}, {"w": tenon.zeros(200, 300)}


def holds(path, value):
    return tenon.equal(tenon.load(path)["w"], value["w"])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "checkpoint"
    tenon.save(OLD, path)
    return path


def test_paths_descriptors_and_unbuffered_files(path):
    for where in (str(path), os.fsencode(path)):
        path.unlink()
        tenon.save(NEW, where)
        assert holds(where, NEW)
    with open(path, "w+b") as file:
        tenon.save(OLD, file.fileno())
        file.seek(0)
        assert holds(file.fileno(), OLD)
        os.fstat(file.fileno())  # the caller's, and open still
    with open(path, "wb", buffering=0) as file:
        tenon.save(NEW, file)
        tenon.save(OLD, file)
    with open(path, "rb", buffering=0) as file:
        assert holds(file, NEW) and holds(file, OLD)  # one after the other


def mixed():
    return {
        "float": tenon.arange(6.0).reshape(2, 3),
        "half": tenon.ones(3, dtype=tenon.float16),
        "bool": tenon.tensor([True, False]),
        "complex": tenon.tensor([1 + 2j]),
        "empty": tenon.zeros(0, 3),
        "parameter": tenon.nn.Parameter(tenon.ones(2)),
        "plain": [1, 2.5, "text", b"bytes", None, {3}, (4,), 1 << 80],
    }


def saved(value):
    file = io.BytesIO()
    tenon.save(value, file)
    return file.getvalue()


def test_every_changed_bit_is_noticed():
    whole = saved(mixed())
    for i in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[i] ^= 1 << bit
            with pytest.raises(ValueError, match="^load: "):
                tenon.load(io.BytesIO(damaged))


def test_every_cut_and_random_damage_is_noticed():
    whole = saved(mixed())
    for n in range(len(whole)):
        with pytest.raises(ValueError, match="^load: "):
            tenon.load(io.BytesIO(whole[:n]))
    draw = random.Random(1)
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(draw.randrange(1, 20)):
            damaged[draw.randrange(len(whole))] = draw.randrange(256)
        if damaged != whole:
            with pytest.raises(ValueError, match="^load: "):
                tenon.load(io.BytesIO(damaged))


def test_a_length_beyond_the_file_says_so_and_takes_no_memory():
    whole = bytearray(saved(mixed()))
    start = whole.index(b"\n") + 1
    whole[start : start + 8] = (1 << 62).to_bytes(8, "little")
    with pytest.raises(ValueError, match=rf"says that {1 << 62} bytes follow, and has \d+; it is damaged"):
        tenon.load(io.BytesIO(whole))


def test_values_of_every_kind_come_back_from_a_file_of_the_release_before():
    want, got = every_kind(tenon), tenon.load(IO / "recorded/own_2.tenon")
    assert [name for name in want if not same(tenon, want[name], got[name])] == []
    assert list(got) == list(want)
    assert got["shared"][0] is got["shared"][1] and got["circular"]["self"] is got["circular"]
    assert got["circular tuple"][0][0] is got["circular tuple"]


def test_values_of_every_kind_go_through_a_file(tmp_path):
    value = every_kind(tenon)
    tenon.save(value, tmp_path / "file")
    got = tenon.load(tmp_path / "file")
    assert [name for name in value if not same(tenon, value[name], got[name])] == []
    assert tenon.load(io.BytesIO(saved(value)))["shared"][0] == [1, 2] and saved(value) == saved(got)


def test_save_names_the_place_of_what_it_refuses():
    for value, place in [({"a": [1, {"b": print}]}, "['a'][1]['b']"), ([0, {print}], "[1]{...}"), ({print: 1}, "[<built-in function print>]")]:
        with pytest.raises(TypeError, match="^save: a builtins.print cannot be in a checkpoint") as caught:
            saved(value)
        assert f", at {place}, " in str(caught.value)
    deep = []
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(ValueError, match=r"^save: values nest more than 1000 deep, at \[0\]\[0\]"):
        saved(deep)


def nested(depth):
    key = ()
    for _ in range(depth):
        key = (key, key)
    return key


def test_save_refuses_what_load_would_refuse(tmp_path):
    same_hash = [i * (2**61 - 1) for i in range(201)]
    assert len({hash(i) for i in same_hash}) == 1
    for value, text in [
        ({"a": dict.fromkeys(same_hash)}, r"^save: more than 200 keys of a dict or set have one hash, at \['a'\], and load refuses that"),
        (set(same_hash), "^save: more than 200 keys of a dict or set have one hash"),
        (frozenset(same_hash), "^save: more than 200 keys of a dict or set have one hash"),
        (collections.OrderedDict.fromkeys(same_hash), "^save: more than 200 keys of a dict or set have one hash"),
        ({nested(23): 1}, "^save: load would refuse the checkpoint: its keys take too many steps to hash"),
    ]:
        with pytest.raises(ValueError, match=text):
            tenon.save(value, tmp_path / "file")
    t, o = tenon.ones(3), collections.OrderedDict()
    t.__dict__[5] = 6
    o.__dict__[5] = 6
    for value in (t, o):
        with pytest.raises(ValueError, match="^save: load would refuse the checkpoint: an attribute's name is an int, and no text"):
            tenon.save(value, tmp_path / "file")
    assert not (tmp_path / "file").exists()
    for value in (dict.fromkeys(same_hash[:200]), set(same_hash[:200]), {nested(8): 1}):
        tenon.save(value, tmp_path / "file")
        assert tenon.load(tmp_path / "file") == value


def test_a_file_that_takes_no_bytes_is_an_error():
    class Raw(io.RawIOBase):
        name = "pipe"

        def __init__(self, answers):
            self.answers = answers

        def writable(self):
            return True

        def write(self, data):
            answer = self.answers.pop(0)
            return len(data) if answer == "all" else answer

    for answers in ([None], ["all", None], [3, None]):
        with pytest.raises(BlockingIOError, match=r"save: pipe: f.write\(\) would have to wait"):
            tenon.save(NEW, Raw(answers))
    for answers in ([0], ["all", 0], [3, 0]):
        with pytest.raises(OSError, match=r"save: pipe: f.write\(\) takes no more bytes"):
            tenon.save(NEW, Raw(answers))
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(reader, "rb"), open(writer, "wb", buffering=0) as sink, pytest.raises(BlockingIOError, match="would have to wait"):
        tenon.save(NEW, sink)

    class Quiet:  # says nothing, as files need not that are not raw
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += data

    quiet = Quiet()
    tenon.save(NEW, quiet)
    assert holds(io.BytesIO(quiet.data), NEW)


# {"w": tenon.tensor([1.0, 2.0])}, as the first format had it.
FIRST = (
    b"tenon-checkpoint-1\n\x80\x04\x95f\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01w\x94\x8c\x08tenon._C\x94\x8c\x0f"
    b"_rebuild_tensor\x94\x93\x94(\x8c\x05tenon\x94\x8c\x06Tensor\x94\x93\x94C\x08\x00\x00\x80?\x00\x00\x00@\x94K"
    b"\x02\x85\x94\x8c\x08tenon._C\x94\x8c\x07float32\x94\x93\x94\x89t\x94R\x94s."
)


def test_files_of_a_later_format_say_so():
    later = saved(mixed()).replace(b"checkpoint, 2\n", b"checkpoint, 3\n")
    with pytest.raises(ValueError, match="^load: .* is a checkpoint of a later version of Tenon"):
        tenon.load(io.BytesIO(later))


def test_files_of_the_first_format_are_read():
    assert tenon.load(io.BytesIO(FIRST))["w"].tolist() == [1, 2]


@pytest.mark.parametrize("opcode", [b"\x8e", b"\x8d", b"\x96"])  # bytes, str and bytearray with a length of eight bytes
def test_a_damaged_length_in_the_first_format_is_a_clear_error(tmp_path, opcode):
    path = tmp_path / "file"
    path.write_bytes(b"tenon-checkpoint-1\n\x80\x04" + opcode + (1 << 45).to_bytes(8, "little") + b"xx.")
    with pytest.raises(ValueError, match=rf"^load: {path}: at byte 30: .* {1 << 45} bytes are expected, and the pickle ends"):
        tenon.load(path)


def test_damage_in_the_first_format_is_an_error_or_goes_unseen():
    draw = random.Random(2)
    for _ in range(2000):
        damaged = bytearray(FIRST)
        damaged[draw.randrange(19, len(FIRST))] = draw.randrange(256)
        try:
            tenon.load(io.BytesIO(damaged))
        except ValueError as error:
            assert str(error).startswith("load: ")


@pytest.mark.parametrize("whole", [lambda: saved(mixed()), lambda: FIRST])
@pytest.mark.parametrize("more", [b"\0", b"x" * 100_000])
def test_bytes_after_the_end_are_refused(tmp_path, whole, more):
    path = tmp_path / "file"
    path.write_bytes(whole() + more)
    with pytest.raises(ValueError, match=rf"^load: {path}: at byte {len(whole())}: .*bytes follow"):
        tenon.load(path)
    with open(path, "rb") as file:  # what follows is the caller's
        tenon.load(file)
        assert file.read() == more


def test_an_open_pipe_is_read_no_further_than_the_value():
    whole = saved({"w": tenon.ones(2)})
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as source, open(writer, "wb", buffering=0) as sink:
        sink.write(whole + whole)
        for _ in range(2):  # the other end stays open
            assert tenon.load(source)["w"].tolist() == [1, 1]


@pytest.mark.parametrize("call", [lambda f: tenon.save(1, f), tenon.load], ids=["save", "load"])
def test_numbers_that_are_no_descriptors(call):
    for number in (-1, 2**40, 10**30):
        with pytest.raises(OSError, match=rf"(save|load): {number} is no descriptor of a file that is open for"):
            call(number)
    with pytest.raises(TypeError, match=r"f must be a path or a file that is open for .*, got True"):
        call(True)


def test_counters_go_through_a_file(tmp_path):
    """As the state of a MultiStepLR has, also within that of others."""
    optimizer = tenon.optim.SGD([tenon.ones(1)], lr=0.1)
    schedule = tenon.optim.lr_scheduler
    stepped = schedule.MultiStepLR(optimizer, [2, 5, 5])
    whole = schedule.SequentialLR(optimizer, [stepped, schedule.ConstantLR(optimizer)], [9])
    for state in (stepped.state_dict(), whole.state_dict(), [collections.Counter()], collections.Counter("aab")):
        tenon.save(state, tmp_path / "state")
        loaded = tenon.load(tmp_path / "state")
        assert loaded == state
    assert type(loaded) is collections.Counter and loaded["c"] == 0
    schedule.MultiStepLR(optimizer, [1]).load_state_dict(stepped.state_dict())
