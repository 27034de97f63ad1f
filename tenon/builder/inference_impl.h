// What an Inference is made of. Of inference.cc and inference_form.cc alone.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "tenon/builder/inference.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/plan/plan.h"

namespace tenon {

struct Inference::Impl {
  static constexpr size_t kSpares = 8;  // runs at once whose memory is kept

  std::vector<Port> inputs, outputs;
  std::vector<Tensor> kept;  // constants among the outputs, by output; undefined for others
  std::unique_ptr<const graph::Plan> plan;
  graph::Graph program;  // as it was before anything was fused

  /// The memory of one run at a time: its workspace, and the addresses that it gets.
  struct Run {
    Storage workspace;
    std::vector<Address> addresses;
  };
  mutable std::array<std::atomic<Run*>, kSpares> spares{};

  ~Impl() {
    for (auto& spare : spares) delete spare.load(std::memory_order_acquire);
  }
  std::unique_ptr<Run> take() const {
    for (auto& spare : spares) {
      if (!spare.load(std::memory_order_relaxed)) continue;
      if (Run* const taken = spare.exchange(nullptr, std::memory_order_acquire))
        return std::unique_ptr<Run>(taken);
    }
    auto run = std::make_unique<Run>();
    if (plan->workspace_size() > 0) run->workspace = Storage::allocate(plan->workspace_size());
    run->addresses.resize(inputs.size() + outputs.size());
    return run;
  }
  void give_back(std::unique_ptr<Run> run) const noexcept {
    for (auto& spare : spares) {
      Run* none = nullptr;
      if (!spare.compare_exchange_strong(none, run.get(), std::memory_order_release,
                                         std::memory_order_relaxed))
        continue;
      (void)run.release();
      return;
    }
  }

  void make_plan(graph::Signature signature) {
    plan = std::make_unique<graph::Plan>(program.copy(), std::move(signature), graph::PlanOptions{});
  }
};

}  // namespace tenon
