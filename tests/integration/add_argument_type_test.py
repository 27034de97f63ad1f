"""One more type of argument takes three edits: a row for the schema language, one for C++, one for Python.

The edits are made in a copy of the headers. What they change of schemas, cells and signatures is compiled with a program
that passes the new type, borrowed, optional, boxed and as a default; what they change of Python's side is compiled alone.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A time span of so many seconds: two words, so that it does not lie in a cell.
EDITS = {
    "tenon/schema/base_types.h": [
        ("  Storage,\n};", "  Storage,\n  Span,\n};"),
        (
            '"Storage", "Storage"},\n};',
            '"Storage", "Storage"},\n    {BaseType::Span, "Span", "", "TimeSpan", "TimeSpan", true, false, "tuple", "tuple"},\n};',
        ),
    ],
    "tenon/dispatch/value_types.h": [
        ("  Storage = 17,", "  Span = 18,\n  Storage = 17,"),
        ("namespace tenon {\n", "namespace tenon {\n\nstruct TimeSpan {\n  double from = 0, to = 0;\n};\n"),
        (
            "/// Calls f.operator()<base>() for every base type",
            "template <>\nstruct ValueType<BaseType::Span> : ValueRow<TimeSpan, const TimeSpan&, CellTag::Span> {};\n\n"
            "/// Calls f.operator()<base>() for every base type",
        ),
    ],
    "python/src/call/python_value.h": [
        (
            "}  // namespace tenon::python",
            """template <>
struct PythonValue<BaseType::Span> : PlainValue<TimeSpan> {
  static bool parse(PyObject* o, TimeSpan& s) { return PyArg_ParseTuple(o, "dd", &s.from, &s.to) != 0; }
  static bool missing(const Default&, TimeSpan&) { return false; }
  static Ref object(PyObject* o) { return PyTuple_Check(o) ? Ref::borrow(o) : Ref(); }
  static TimeSpan value(PyObject* o) {
    TimeSpan s;
    parse(o, s);
    return s;
  }
  static PyObject* wrap(const TimeSpan& s) { return Py_BuildValue("(dd)", s.from, s.to); }
};

}  // namespace tenon::python""",
        ),
    ],
}

PROGRAM = r"""
#include <cstdio>

#include "tenon/dispatch/library.h"

using namespace tenon;

#define CHECK(condition) if (!(condition)) return std::printf("line %d: %s\n", __LINE__, #condition), 1

int main() {
  const auto parsed = schema::parse_schema("f(Span a, Span? b=None) -> Span");
  CHECK(schema::to_string(parsed) == "f(Span a, Span? b=None) -> Span");
  CHECK(schema::cpp_type(parsed.arguments[0]) == "const TimeSpan&");
  CHECK(schema::cpp_type(parsed.arguments[1]) == "std::optional<TimeSpan>");
  CHECK(schema::cpp_return_type(parsed) == "TimeSpan");
  CHECK(schema::python_type(parsed.arguments[1]) == "tuple | None");

  Library def(Library::Kind::Fragment, "spans", "", SourceLocation::here());
  def.def("longer(Tensor t, Span a, Span? b=None) -> Span", +[](const Tensor&, TimeSpan a, std::optional<TimeSpan> b) {
    return TimeSpan{a.from, a.to + (b ? b->to - b->from : 0)};
  });
  const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw("spans::longer");
  const Tensor t = make_empty({1}, kFloat32);
  const TimeSpan a{1, 2}, b{3, 7};
  const auto typed = op.typed<TimeSpan(const Tensor&, const TimeSpan&, std::optional<TimeSpan>)>();
  CHECK(typed.call(t, a, b).to == 6 && typed.call(t, a, std::nullopt).to == 2);
  Stack stack;
  stack.push(t);
  stack.push(a);
  stack.push(b);
  CHECK(name(stack.tag(1)) == "Span");
  Stack copy;
  for (size_t i = 0; i < 3; ++i) copy.push_copy(stack, i);
  op.call_boxed(copy);
  CHECK(copy.size() == 1 && copy.at<TimeSpan>(0).to == 6);
  stack.drop(1);
  stack.push_none();
  op.call_boxed(stack);
  CHECK(stack.pop<TimeSpan>().to == 2);
  try {
    op.typed<TimeSpan(const Tensor&, double, std::optional<TimeSpan>)>();
    return std::puts("a misfit was taken"), 1;
  } catch (const Error& e) {
    CHECK(e.message().find("argument `a` is Span in the schema, float in the kernel") != std::string::npos ||
          std::string(e.what()).find("argument `a` is Span in the schema, float in the kernel") != std::string::npos);
  }
  def.def("infer", +[](const TimeSpan& s) { return s; });
  CHECK(schema::to_string(Dispatcher::singleton().find_schema_or_throw("spans::infer").schema()) ==
        "spans::infer(Span _0) -> Span");
  std::puts("passed");
}
"""

# What a generated file of signatures has, a saved argument, and a schema's values.
PYTHON = """
#include "python/src/call/typed_call.h"
#include "tenon/autograd/derivative.h"
#include "python/src/call/op_schema.cc"
namespace tenon::python {
template struct Caller<Tensor(const Tensor&, const TimeSpan&, std::optional<TimeSpan>)>;
template struct Caller<TimeSpan(const Tensor&)>;
static_assert(std::is_same_v<autograd::SavedArg<const TimeSpan&>::Stored, TimeSpan>);
}
"""

# The rooms that know the types. The rest comes from the library, whose own dispatcher the program does not use.
COMPILED = ["tenon/schema/*.cc", "tenon/dispatch/*.cc"]


@pytest.fixture(scope="module")
def build():
    """The release build: another one's library may need a sanitizer's runtime, which the program is not linked with."""
    build = ROOT / "build/release"
    if not (build / "tenon/libtenon.so").exists():
        pytest.skip("needs the release build with a shared libtenon")
    return build


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    tree = tmp_path_factory.mktemp("argument_type")
    for folder in ["tenon", "python/src", "backends"]:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert len(EDITS) <= 3
    for path, edits in EDITS.items():
        text = (tree / path).read_text()
        for old, new in edits:
            assert text.count(old) == 1, (path, old)
            text = text.replace(old, new)
        (tree / path).write_text(text)
    return tree


def compile_command(tree, build):
    ninja = (build / "build.ninja").read_text()
    system = sorted(set(re.findall(r"-isystem (\S+)", ninja)))
    return [os.environ.get("CXX", "c++"), "-std=c++20", "-O0", f"-I{tree}", f"-I{build / 'generated'}",
            *(f"-isystem{s}" for s in system), f"-I{sysconfig.get_path('include')}"]  # fmt: skip


def run(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_a_new_type_is_passed_typed_boxed_and_inferred(tree, build):
    (tree / "program.cc").write_text(PROGRAM)
    sources = ["program.cc", *(s for pattern in COMPILED for s in sorted(p.relative_to(tree) for p in tree.glob(pattern)))]
    run([*compile_command(tree, build), "-rdynamic", *sources, "-o", "program", f"-L{build / 'tenon'}", "-ltenon", "-lfmt",
         "-ldl", f"-Wl,-rpath,{build / 'tenon'}"], cwd=tree)  # fmt: skip
    assert run([tree / "program"]).strip() == "passed"


def test_python_parses_wraps_and_saves_it(tree, build):
    (tree / "python_side.cc").write_text(PYTHON)
    run([*compile_command(tree, build), "-fsyntax-only", "python_side.cc"], cwd=tree)
