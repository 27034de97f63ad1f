#include "tenon/core/thread_state.h"

namespace tenon {

thread_local constinit ThreadState thread_state;

}  // namespace tenon
