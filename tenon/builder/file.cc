// Built graphs as bytes: the plan that runs, and what is known of the tensors that a caller brings.
#include <fmt/format.h>

#include "tenon/builder/graph.h"
#include "tenon/builder/lowering.h"
#include "tenon/core/error.h"
#include "tenon/core/tensor.h"
#include "tenon/expr/expression.h"
#include "tenon/graph/text/bytes.h"
#include "tenon/iter/host.h"

namespace tenon::builder {
namespace {

constexpr std::string_view kMagic = "TENONPLN";
constexpr uint64_t kVersion = 3;  // raised whenever the bytes of plans or of this file change

void write(graph::ByteWriter& out, const Dims& dims) {
  out.number(dims.size());
  for (const int64_t d : dims) out.signed_number(d);
}
Dims read_dims(graph::ByteReader& in) {
  Dims dims;
  for (size_t n = in.count(); n > 0; --n) dims.push_back(in.signed_number());
  return dims;
}

[[noreturn]] void refuse(const std::string& why) { throw_error(ErrorKind::Value, "deserialize: " + why); }

}  // namespace

std::vector<std::byte> Graph::serialize() const {
  const graph::Plan& p = *plan();
  graph::ByteWriter body;
  body.text(kHost.target());
  body.text(candidates_[chosen_].name);
  body.number(p.uids_sorted().size());
  for (const uint64_t uid : p.uids_sorted()) {
    const TensorAttributes& t = *find_tensor(uid);
    body.number(uid);
    body.text(t.name_);
    write(body, t.dim_);
    write(body, t.stride_);
    body.byte(static_cast<uint8_t>(*t.dtype_));
    body.byte(static_cast<uint8_t>(t.is_output_ | t.by_value_ << 1));
  }
  p.write(body);
  graph::ByteWriter file;
  file.characters(kMagic);
  file.fixed(kVersion);
  file.fixed(body.bytes().size());
  file.fixed(graph::checksum(body.bytes()));
  file.append(body);
  return file.take();
}

void Graph::deserialize(std::span<const std::byte> bytes) {
  TENON_CHECK(stage_ < Stage::Plans && (tensors_.empty() || stage_ == Stage::Operations), Runtime,
              "deserialize: the graph is neither empty nor one whose operations, and no more, are built");
  graph::ByteReader in(bytes);
  if (bytes.size() < kMagic.size() || in.characters(kMagic.size()) != kMagic)
    refuse("these bytes are no plan");
  if (in.rest().size() < 24) refuse("the bytes end within the header");
  if (const uint64_t version = in.fixed(); version != kVersion)
    refuse(fmt::format("this is version {} of the form; this build reads version {}", version, kVersion));
  const uint64_t length = in.fixed(), sum = in.fixed();
  if (length != in.rest().size())
    refuse(fmt::format("{} bytes should follow, and {} do", length, in.rest().size()));
  if (sum != graph::checksum(in.rest())) refuse("the bytes are not those that were written");
  if (const std::string target = in.text(); target != kHost.target())
    refuse(fmt::format("the plan was made for {}, and this process runs {}", target, kHost.target()));
  Candidate made{.name = in.text(), .engine = {}, .options = {}, .plan = {}, .refused = {}};
  std::vector<TensorDescription> described;
  std::vector<bool> outputs;
  for (size_t n = in.count(); n > 0; --n) {
    TensorDescription& t = described.emplace_back();
    t.uid = in.number();
    t.name = in.text();
    t.dim = read_dims(in);
    t.stride = read_dims(in);
    t.data_type = static_cast<DType>(in.below(kNumDTypes, "dtype"));
    const uint8_t flags = in.byte();
    outputs.push_back((flags & 1) != 0);
    t.is_pass_by_value = (flags & 2) != 0;
  }
  made.plan = graph::Plan::read(in);
  if (made.plan->device() != handle_.device)
    refuse(fmt::format("the plan runs on {}, and the graph's handle is one of {}",
                       name_of(made.plan->device()), name_of(handle_.device)));
  const std::string own = expr::to_string(made.plan->key());
  if (stage_ == Stage::Operations) {
    if (own != key())
      refuse(fmt::format("the plan is of another graph: its key is {}, this graph's {}", own, key()));
    for (const TensorDescription& t : described) {
      const TensorAttributes* const here = find_tensor(*t.uid);
      if (!here || here->dim_ != t.dim || here->is_output_ != outputs[&t - described.data()])
        refuse(fmt::format("UID {} is another tensor in this graph", *t.uid));
    }
  } else {
    for (size_t i = 0; i < described.size(); ++i) {
      TensorAttributes& t = tensor(std::move(described[i]));
      t.is_output_ = outputs[i];
    }
    lowered_ = std::make_unique<Lowered>();
    lowered_->key = own;
  }
  candidates_.push_back(std::move(made));
  chosen_ = candidates_.size() - 1;
  stage_ = Stage::Built;
}

}  // namespace tenon::builder
