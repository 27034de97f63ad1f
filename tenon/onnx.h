// ONNX: networks that other programs wrote, as modules. Includes all of tenon/onnx that programs use.
#pragma once

#include "tenon/core/require_cxx20.h"

#include "tenon/onnx/model.h"
#include "tenon/onnx/save.h"
