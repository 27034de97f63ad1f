"""The modules that PyTorch has its layers in, by which programs import them: tenon.nn.modules.conv, .batchnorm, .utils and others.

Each is made here, of names of tenon.nn; the layers themselves are in the modules of tenon.nn.
"""

import sys
import types

from ... import nn
from ..._names.absent import AbsentName, attribute_error
from .. import conv, dropout, lazy, loss, norm, pooling
from . import utils as utils

# The names of each, as PyTorch has them; those that tenon.nn lacks say so when they are asked for.
_NAMES = {
    "activation": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish MultiheadAttention PReLU RReLU "
        "ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold"
    ),
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm",
    "channelshuffle": "ChannelShuffle",
    "container": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": (
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d "
        "LazyConvTranspose2d LazyConvTranspose3d"
    ),
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": (
        "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d"
    ),
    "lazy": "",
    "linear": "Bilinear Identity LazyLinear Linear",
    "loss": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss "
        "L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d "
        "PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "module": "Module",
    "normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d "
        "ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d"
    ),
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d "
        "AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d "
        "MaxUnpool2d MaxUnpool3d"
    ),
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}
# Base classes by which programs tell layers apart, under PyTorch's names.
_BASES: dict[str, dict[str, type]] = {
    "batchnorm": {"_BatchNorm": norm._BatchNorm, "_NormBase": norm._ChannelNorm},
    "conv": {"_ConvNd": conv._Convolution, "_ConvTransposeNd": conv._ConvTranspose},
    "dropout": {"_DropoutNd": dropout._Dropout},
    "instancenorm": {"_InstanceNorm": norm._InstanceNorm, "_NormBase": norm._ChannelNorm},
    "lazy": {"LazyModuleMixin": lazy.LazyModuleMixin},
    "loss": {"_Loss": loss._Loss, "_WeightedLoss": loss._WeightedLoss},
    "pooling": {"_AvgPoolNd": pooling._AvgPool, "_LPPoolNd": pooling._LPPool, "_MaxPoolNd": pooling._MaxPool},
}


class _Room(types.ModuleType):
    """One of these modules."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{__name__}.{name}", f"Layers of tenon.nn that PyTorch has in torch.nn.modules.{name}.")
        self.__dict__.update(_BASES.get(name, {}))
        self._names = frozenset(_NAMES[name].split())
        self.__all__ = sorted(n for n in self._names if hasattr(nn, n))

    def __getattr__(self, name: str) -> object:
        if name not in self._names:
            raise AbsentName(f"module {self.__name__!r} has no attribute {name!r}", lambda: "; tenon.nn has its layers")
        self.__dict__[name] = found = getattr(nn, name)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.__all__} - {"_names"})


for _name in _NAMES:
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _Room(_name)

_LAYERS = frozenset(name for names in _NAMES.values() for name in names.split())
__all__ = sorted(name for name in _LAYERS if hasattr(nn, name))


def __getattr__(name: str) -> object:
    if name not in _LAYERS:
        raise attribute_error(__name__, name)
    globals()[name] = found = getattr(nn, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
