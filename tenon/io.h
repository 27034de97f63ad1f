// Weights in files: state dicts, safetensors, checkpoints. Includes all of tenon/io that programs use.
#pragma once

#include "tenon/io/checkpoint.h"
#include "tenon/io/program_file.h"
#include "tenon/io/replace_file.h"
#include "tenon/io/safetensors.h"
#include "tenon/io/state_dict.h"
#include "tenon/io/value.h"
