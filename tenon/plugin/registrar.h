// TenonRegistrar: what a plug-in registers while it is loaded. It is collected first, and becomes visible as
// a whole once nothing can be wrong with the device itself any more. Used by this room alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/plugin/device.h"

struct TenonRegistrar {
  struct Kernel {
    std::string op, key;    ///< No key: a catch-all kernel.
    std::string signature;  ///< Empty: of unknown types.
    TenonKernel kernel;
    void* data;
    const char* file;
    int line;
  };
  struct Stub {
    std::string name, signature;
    TenonKernel kernel;
    void* data;
  };
  std::vector<std::pair<std::string, tenon::Tags>> operators;  ///< Their schemas and tags.
  std::vector<Kernel> kernels;
  std::vector<Stub> stubs;
  bool falls_back = true;  ///< What `fallbacks` does not name.
  std::vector<std::pair<std::string, bool>> fallbacks;
};

namespace tenon::plugin {

/// What was registered for a device in the dispatcher; goes with this object.
class Registrations {
 public:
  Registrations() = default;
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  ~Registrations() { clear(); }

  /// Registers everything, or throws and registers nothing.
  void commit(const TenonRegistrar& wanted, const PluginDevice& device);
  void clear() noexcept;

 private:
  void declare(const std::string& schema, Tags tags, const SourceLocation& where);

  std::vector<uint64_t> ids_;
  std::vector<std::string> stubs_, declared_;
  Backend backend_ = kCpuBackend;
};

}  // namespace tenon::plugin
