// Plans as bytes: the graph as it is fused, with the engine of each region, and what the caller brings. No
// machine code: it is made again from expressions.
#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/plan/plan.h"
#include "tenon/graph/text/binary.h"
#include "tenon/graph/text/bytes.h"

namespace tenon::graph {
namespace {

void write(ByteWriter& out, const Scalar& v) {
  out.byte(static_cast<uint8_t>(v.kind()));
  if (v.is_integral()) return out.signed_number(v.to_int());
  out.real(v.to_complex().real());
  out.real(v.to_complex().imag());
}

Scalar read_scalar(ByteReader& in) {
  const auto kind = static_cast<Scalar::Kind>(in.byte());
  switch (kind) {
    case Scalar::Kind::Bool:
      return in.signed_number() != 0;
    case Scalar::Kind::Int:
      return in.signed_number();
    case Scalar::Kind::Float: {
      const double v = in.real();
      (void)in.real();
      return v;
    }
    case Scalar::Kind::Complex: {
      const double re = in.real();
      return std::complex<double>(re, in.real());
    }
  }
  in.fail("there is no such kind of number");
}

}  // namespace

void Plan::write(ByteWriter& out) const {
  out.fixed(report_.key.high);
  out.fixed(report_.key.low);
  out.number(signature_.tensors.size());
  for (const Signature::Tensor& t : signature_.tensors) {
    out.number(t.uid);
    out.number(t.storage);
    out.signed_number(t.offset);
  }
  out.number(signature_.values.size());
  for (const Signature::Value& v : signature_.values) {
    out.number(v.uid);
    out.byte(static_cast<uint8_t>(v.dtype));
    out.number(v.numbers.size());
    for (const uint32_t number : v.numbers) out.number(number);
  }
  out.number(signature_.numbers.size());
  for (const Scalar& number : signature_.numbers) graph::write(out, number);
  const std::vector<std::byte> graph = serialize(graph_);
  for (const std::byte b : graph) out.byte(static_cast<uint8_t>(b));
}

std::shared_ptr<const Plan> Plan::read(ByteReader& in) {
  expr::Key key;
  key.high = in.fixed();
  key.low = in.fixed();
  Signature s;
  for (size_t n = in.count(); n > 0; --n) {
    Signature::Tensor t{.uid = in.number(), .storage = in.below(kNone, "storage"), .offset = 0};
    t.offset = in.signed_number();
    s.tensors.push_back(t);
  }
  for (size_t n = in.count(); n > 0; --n) {
    Signature::Value v{
        .uid = in.number(), .dtype = static_cast<DType>(in.below(kNumDTypes, "dtype")), .numbers = {}};
    for (size_t k = in.count(); k > 0; --k) v.numbers.push_back(in.below(kNone, "number"));
    s.values.push_back(std::move(v));
  }
  for (size_t n = in.count(); n > 0; --n) s.numbers.push_back(read_scalar(in));
  Graph graph = deserialize(in.rest());
  const bool fits =
      s.numbers.size() == graph.numbers.size() &&
      std::ranges::all_of(s.tensors, [&](const auto& t) { return t.storage < graph.storages.size(); }) &&
      std::ranges::all_of(s.values, [&](const auto& v) {
        return std::ranges::all_of(v.numbers, [&](uint32_t number) { return number < graph.numbers.size(); });
      });
  if (!fits) in.fail("the plan's parts do not fit each other");
  return std::shared_ptr<const Plan>(new Plan(std::move(graph), std::move(s), key));
}

}  // namespace tenon::graph
