// Operators of sequences and of optional values, whose rows are in rows_control.cc. Of this room alone.
#pragma once

#include "tenon/onnx/node_call.h"

namespace tenon::onnx {

void concat_from_sequence(NodeCall& n);
void optional_of(NodeCall& n);
void optional_get_element(NodeCall& n);
void optional_has_element(NodeCall& n);
void sequence_at(NodeCall& n);
void sequence_construct(NodeCall& n);
void sequence_empty(NodeCall& n);
void sequence_erase(NodeCall& n);
void sequence_insert(NodeCall& n);
void sequence_length(NodeCall& n);
void sequence_map(NodeCall& n);
void split_to_sequence(NodeCall& n);

}  // namespace tenon::onnx
