"""Model archives and trained weights in PyTorch."""

import json
import os

import torch

VERSION = 1
MANIFEST = "manifest.json"


class ChainModel(torch.nn.Module):
    """A chain of layers, called like nn.Sequential, with the same state_dict names. Unlike it, it
    gives every layer one argument, be it a tensor or a tuple of tensors.

    `before_layer(index)` is called before each layer runs, when it is set.
    """

    def __init__(self, layers):
        super().__init__()
        for name, layer in layers:
            self.add_module(name, layer)
        self.before_layer = None

    def forward(self, x):
        for index, layer in enumerate(self.children()):
            if self.before_layer is not None:
                self.before_layer(index)
            x = layer(x)
        return x


def read_manifest(path):
    """manifest.json of the archive (a folder) at `path`. Raises ValueError for anything else."""
    file_name = os.path.join(path, MANIFEST)
    if not os.path.isfile(file_name):
        raise ValueError(f"{path}: not a model archive: it holds no {MANIFEST}")
    with open(file_name, encoding="utf-8") as file:
        manifest = json.load(file)
    if manifest.get("funcpipe_model") != VERSION:
        raise ValueError(f"{file_name}: not version {VERSION} of a model manifest")
    return manifest


def load(path):
    """The model of an archive folder, as a ChainModel of its TorchScript layers."""
    manifest = read_manifest(path)
    return ChainModel(
        (layer["name"], torch.jit.load(os.path.join(path, layer["file"]), map_location="cpu"))
        for layer in manifest["layers"]
    )


def load_weights(model, path):
    """Loads trained weights (model.safetensors of a run) into the PyTorch model that was exported,
    and returns the model. Raises RuntimeError naming tensors that are missing or do not fit.
    Non-persistent buffers, which TorchScript saves and state_dict does not, are left out."""
    from .weights import load_safetensors

    weights = load_safetensors(path)
    if not isinstance(model, torch.nn.Module):
        model = ChainModel((str(i), layer) for i, layer in enumerate(model))
    known = model.state_dict().keys()
    extra = {name for name, _ in model.named_buffers()} - known
    model.load_state_dict({name: value for name, value in weights.items() if name not in extra})
    return model
