// What Tenon offers to plug-ins: the table of functions that each gets when it is loaded. Used by load.cc.
#pragma once

#include "tenon/abi/tenon_abi.h"

namespace tenon::plugin {

/// Lives as long as the process.
const TenonHost& host_table() noexcept;

}  // namespace tenon::plugin
