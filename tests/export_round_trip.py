"""A user's model: exported, trained elsewhere, loaded back.

export_round_trip.py export FOLDER | compare RUN_DIR
"""

import sys
from typing import Tuple

import torch
from torch import nn

import funcpipe
from funcpipe.weights import load_safetensors


class Split(nn.Module):
    """Hands on its input beside what it computes: a tuple crosses the cut behind it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(144, 24)

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return torch.tanh(self.linear(x)), x


class Join(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 4)
        self.skip = nn.Linear(144, 4, bias=False)

    def forward(self, pair: Tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return self.linear(pair[0]) + self.skip(pair[1])


def make_model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), Split(), Join())


def main():
    action, path = sys.argv[1:]
    model = make_model()
    if action == "export":
        funcpipe.export(model, path, example_input=torch.zeros(2, 1, 12, 12))
        return
    model.load_state_dict(load_safetensors(f"{path}/model.safetensors"))
    inputs = torch.randn(5, 1, 12, 12)
    with torch.no_grad():
        difference = (model(inputs) - torch.jit.load(f"{path}/model.pt")(inputs)).abs().max().item()
    assert difference < 1e-6, difference


main()
