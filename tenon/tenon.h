// The one header of Tenon for users: tensors, operators, autograd, and the registration of operators.
// Smaller ones beneath it (tenon/core/tensor.h, tenon/generated/functions.h) are for those who want less.
#pragma once

#include "tenon/core/require_cxx20.h"

#include "tenon/autograd/autograd.h"
#include "tenon/autograd/function.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/core/strict.h"
#include "tenon/core/tensor.h"
#include "tenon/dispatch/library.h"
#include "tenon/generated/functions.h"
#include "tenon/ops/factory/from_data.h"
#include "tenon/ops/indexing/tensor_index.h"
#include "tenon/ops/print.h"
#include "tenon/ops/tensor_operators.h"
