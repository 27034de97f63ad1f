// Modules: layers with parameters, and how those start. Includes all of tenon/nn.
// Used by programs that train or run a model. PyTorch's names and defaults.
#pragma once

#include "tenon/core/require_cxx20.h"

#include "tenon/nn/activation.h"
#include "tenon/nn/conv.h"
#include "tenon/nn/dropout.h"
#include "tenon/nn/embedding.h"
#include "tenon/nn/init.h"
#include "tenon/nn/linear.h"
#include "tenon/nn/loss.h"
#include "tenon/nn/module.h"
#include "tenon/nn/norm.h"
#include "tenon/nn/pooling.h"
#include "tenon/nn/recurrent.h"
#include "tenon/nn/sequential.h"
