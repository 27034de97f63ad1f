// Optimizers: what turns gradients into better parameters. Includes all of tenon/optim.
// Used by programs that train. PyTorch's names and defaults.
#pragma once

#include "tenon/core/require_cxx20.h"

#include "tenon/optim/adam.h"
#include "tenon/optim/sgd.h"
