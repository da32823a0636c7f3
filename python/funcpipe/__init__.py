"""FuncPipe's Python side: PyTorch models to model archives, and trained weights back.

    import funcpipe
    funcpipe.export(model, "model", example_input=torch.zeros(2, 1, 28, 28))
    funcpipe.load_weights(model, "runs/mnist/model.safetensors")

Only torch is needed (and numpy for funcpipe.reference). docs/models.md explains archives.
"""

from .export import ExportError, export
from .model import ChainModel, load, load_weights
from .weights import load_safetensors

__all__ = ["ChainModel", "ExportError", "export", "load", "load_safetensors", "load_weights"]
