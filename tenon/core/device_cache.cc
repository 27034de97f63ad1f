#include "tenon/core/device_cache_impl.h"

namespace tenon {

template class BasicDeviceCache<NoFaults>;

}  // namespace tenon
