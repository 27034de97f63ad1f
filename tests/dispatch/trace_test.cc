// The trace with shapes and times, and recordings of several threads.
#include "tenon/dispatch/trace.h"

#include <regex>
#include <thread>

#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

std::string g_lines;
void collect_line(std::string_view line) { g_lines.append(line).append("\n"); }

Tensor outer(const Tensor& a, const std::optional<Tensor>&, TensorList) {
  return find("recorded::inner").typed<Tensor(const Tensor&)>().call(a);
}
Tensor inner(const Tensor& a) { return a; }
Tensor fails(const Tensor&) { throw std::runtime_error("no"); }

class RecordedTrace : public ::testing::Test {
 protected:
  RecordedTrace() {
    def.def("outer(Tensor a, Tensor? b, Tensor[] c) -> Tensor");
    def.def("inner(Tensor a) -> Tensor");
    def.def("fails(Tensor a) -> Tensor");
    impl.impl("outer", &outer);
    impl.impl("inner", &inner);
    impl.impl("fails", &fails);
    set_diagnostic_sink(&collect_line);
    g_lines.clear();
  }
  ~RecordedTrace() override {
    set_dispatch_trace(false);
    set_diagnostic_sink(nullptr);
  }
  static void call() {
    const Tensor a = make_empty({2, 3}, kFloat32), b = make_empty({}, kInt64);
    const Tensor list[] = {a, b};
    find("recorded::outer")
        .typed<Tensor(const Tensor&, const std::optional<Tensor>&, TensorList)>()
        .call(a, b, list);
  }
  static void call_what_fails() {
    EXPECT_THROW(find("recorded::fails").typed<Tensor(const Tensor&)>().call(one()), std::runtime_error);
  }

  Library def = declare("recorded");
  Library impl = implement("recorded", "CPU");
};

TEST_F(RecordedTrace, ShowsShapesAndTimesOnRequest) {
  set_dispatch_trace({.shapes = true, .times = true});
  call();
  call_what_fails();
  set_dispatch_trace(false);
  call();
  const std::string text = std::regex_replace(g_lines, std::regex("us=\\[[0-9]+\\.[0-9]\\]"), "us=[T]");
  EXPECT_EQ(text,
            " [call] op=[recorded::outer], key=[CPU], args=[CPU, CPU, CPU], shapes=[[2, 3], [], [2, 3], []]\n"
            "   [call] op=[recorded::inner], key=[CPU], args=[CPU], shapes=[[2, 3]]\n"
            "   [return] op=[recorded::inner], us=[T]\n"
            " [return] op=[recorded::outer], us=[T]\n"
            " [call] op=[recorded::fails], key=[CPU], args=[CPU], shapes=[[1]]\n"
            " [throw] op=[recorded::fails], us=[T]\n");
}

TEST_F(RecordedTrace, BoxedCallsShowTheSame) {
  set_dispatch_trace({.shapes = true});
  Stack stack;
  stack.push(make_empty({4}, kFloat32));
  find("recorded::inner").call_boxed(stack);
  EXPECT_EQ(g_lines, " [call] op=[recorded::inner], key=[CPU], args=[CPU], shapes=[[4]]\n");
}

TEST_F(RecordedTrace, RecordsNestedCallsOfEveryThread) {
  TraceRecording recording;
  call();
  std::thread(call).join();
  call_what_fails();
  const std::vector<TraceEvent> events = recording.stop();
  call();
  ASSERT_EQ(events.size(), 5);
  EXPECT_TRUE(g_lines.empty()) << "a recording prints nothing";
  for (size_t i = 0; i < 4; i += 2) {
    const TraceEvent &around = events[i], &inside = events[i + 1];
    EXPECT_EQ(around.op, "recorded::outer");
    EXPECT_EQ(inside.op, "recorded::inner");
    EXPECT_EQ(inside.thread, around.thread);
    EXPECT_EQ(inside.depth, around.depth + 1);
    EXPECT_LE(around.begin_ns, inside.begin_ns);
    EXPECT_LE(inside.begin_ns, inside.end_ns);
    EXPECT_LE(inside.end_ns, around.end_ns);
    EXPECT_EQ(around.key, "CPU");
    EXPECT_EQ(around.shapes.size(), 4);
    EXPECT_EQ(around.dtypes, (std::vector<DType>{kFloat32, kInt64, kFloat32, kInt64}));
    EXPECT_FALSE(around.stream) << "the host has none";
  }
  EXPECT_NE(events[0].thread, events[2].thread);
  EXPECT_TRUE(events[4].failed);
  EXPECT_FALSE(events[0].failed);
}

TEST_F(RecordedTrace, RecordingsOverlapAndLeaveThePrintedTraceAlone) {
  set_dispatch_trace(true);
  TraceRecording first;
  {
    TraceRecording second;
    call();
    EXPECT_EQ(second.stop().size(), 2);
    EXPECT_TRUE(second.stop().empty());
  }
  call();
  EXPECT_EQ(first.stop().size(), 4);
  call();
  EXPECT_EQ(std::count(g_lines.begin(), g_lines.end(), '\n'), 6);
}

}  // namespace
}  // namespace tenon
